// A controller that speaks Content-Length frames, by vscode-jsonrpc: node controller_vscode.cjs SOCKET prints what it heard.
const net = require("net");
const rpc = require("vscode-jsonrpc/node");

const q = [0.1, -0.2, 0.3, -0.4, 0.5, -0.6];
const failure = (e) => ({ code: e.code, message: e.message, data: e.data });

async function main(path) {
  const socket = net.connect(path);
  await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  const connection = rpc.createMessageConnection(new rpc.SocketMessageReader(socket), new rpc.SocketMessageWriter(socket));
  const complaints = [];
  connection.onError(([error]) => complaints.push(String(error)));
  connection.onUnhandledNotification((message) => complaints.push(message));
  connection.listen();
  const heard = {};

  heard.position = await connection.sendRequest("compute_fk", rpc.ParameterStructures.byPosition, ...q);
  heard.name = await connection.sendRequest("compute_fk", { q, links: ["tool0"], format: "pose" });
  heard.error = await connection.sendRequest("compute_fk", { q, links: ["tool"] }).catch(failure);
  heard.unknown = await connection.sendRequest("compute_kf", q).catch(failure);

  await connection.sendNotification("compute_fk", { q });
  await connection.sendNotification("no such method", { q });
  heard.ping = await connection.sendRequest("ping", rpc.ParameterStructures.byPosition);

  // Cancelled or not, it is answered: there is nothing to be saved.
  const source = new rpc.CancellationTokenSource();
  const cancelled = connection.sendRequest("compute_fk", { q, links: "all" }, source.token);
  source.cancel();
  heard.cancelled = Object.keys((await cancelled).poses).length;

  const turns = Array.from({ length: 300 }, (_, k) => [k / 100, 0, 0, 0, 0, 0]);
  const many = await Promise.all(turns.map((turn) => connection.sendRequest("compute_fk", rpc.ParameterStructures.byPosition, ...turn)));
  heard.many = many.map((T) => T[3]);
  const batch = await connection.sendRequest("compute_fk_batch", { q: Array.from({ length: 2000 }, (_, k) => turns[k % 300]) });
  heard.batch = batch.poses.tool0.map((T) => T[3]);

  heard.complaints = complaints;
  connection.end();
  console.log(JSON.stringify(heard));
}

main(process.argv[2]).catch((e) => { console.error(e); process.exit(1); });
