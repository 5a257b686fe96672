// A controller that speaks lines, by jayson: node controller_jayson.cjs SOCKET prints what it heard.
const jayson = require("jayson");

const q = [0.1, -0.2, 0.3, -0.4, 0.5, -0.6];

async function main(path) {
  const client = jayson.Client.tcp({ path });
  const ask = (...request) => new Promise((resolve, reject) => client.request(...request, (e, reply) => (e ? reject(e) : resolve(reply))));
  const heard = {};

  heard.position = await ask("compute_fk", q);
  heard.name = await ask("compute_fk", { q, links: ["tool0"], format: "pose" });
  heard.id = await ask("ping", [], "an id of its own");
  heard.error = await ask("compute_fk", { q, links: ["tool"] });
  heard.unknown = await ask("compute_kf", q);
  heard.notification = (await ask("compute_fk", q, null)) === undefined;

  // Made without a callback, a request is only made; an array of them is sent as a batch.
  const batch = [
    client.request("compute_fk", q, "first"),
    client.request("compute_fk", { q }, null),
    client.request("compute_kf", q, "second"),
    client.request("ping", [], "third"),
  ];
  heard.batch = await ask(batch);
  console.log(JSON.stringify(heard));
}

main(process.argv[2]).catch((e) => { console.error(e); process.exit(1); });
