"""model, status, ping, reload, call: what the daemon (or a model file) says of itself."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

from fkd.ctl import text
from fkd.ctl.main import UsageError
from fkd.ctl.target import target, tell

RELOAD_PATIENCE = 65.0  # seconds: a little more than the daemon gives a reload


def add_model(p: argparse.ArgumentParser) -> None:
    p.epilog = "examples:\n  fkctl model\n  fkctl --model ur5e.zip model --json"
    p.set_defaults(run=model)


def model(options: argparse.Namespace) -> int:
    return tell(options, "model", [], show_model)


def show_model(m: dict[str, Any]) -> None:
    text.say(f"{m['name']}: {m['base']} -> {m['tip'] or '(no single tip)'}, digest {m['digest'][:12]}, generation {m['generation']}")
    joints = {j["name"]: j for j in m["joints"]}
    text.say(f"q takes {text.count(m['dof'], 'value')}{', in this order:' if m['dof'] else ''}")
    for name in m["q"]:
        j = joints[name]
        text.say(f"  {j['index']:>3}  {name}  ({describe(j)})")
    followers = [j for j in m["joints"] if j["mimic"]]
    for j in followers:
        text.say(f"       {j['name']}  (follows {j['mimic']['joint']})")
    text.say(f"links: {' '.join(m['links'])}")


def describe(j: dict[str, Any]) -> str:
    """A joint's type and limits in a few words."""
    limits = f" {j['limits']['lower']:g} .. {j['limits']['upper']:g}" if j["limits"] else ""
    unit = {"revolute": " rad", "prismatic": " m"}.get(j["type"], "") if limits else ""
    width = f", {j['width']} values" if j["width"] > 1 else ""
    return f"{j['type']}{limits}{unit}{width}"


def add_status(p: argparse.ArgumentParser) -> None:
    p.epilog = "examples:\n  fkctl status\n  fkctl --socket /run/fkd/left.sock status --json"
    p.set_defaults(run=status)


def status(options: argparse.Namespace) -> int:
    return tell(options, "status", [], show_status)


def show_status(s: dict[str, Any]) -> None:
    width = max(map(len, s))
    for key, value in s.items():
        shown = f"{value:.1f}" if isinstance(value, float) else "-" if value is None else value
        text.say(f"{key:<{width}}  {' '.join(value) or '-' if isinstance(value, list) else shown}")


def add_ping(p: argparse.ArgumentParser) -> None:
    p.epilog = "examples:\n  fkctl ping && echo up"
    p.set_defaults(run=ping)


def ping(options: argparse.Namespace) -> int:
    start = time.perf_counter()

    def show(answer: str) -> None:
        text.say(f"{answer} in {(time.perf_counter() - start) * 1e3:.2f} ms (connection and all)")

    return tell(options, "ping", [], show)


def add_reload(p: argparse.ArgumentParser) -> None:
    p.add_argument("bundle", nargs="?", metavar="BUNDLE", help="another file to serve from now on (default: the one that serves, read anew)")
    p.epilog = "examples:\n  fkctl reload\n  fkctl reload ur5e-unit7.zip\n\nOnly root, the daemon's own user and its admin group may."
    p.set_defaults(run=reload)


def reload(options: argparse.Namespace) -> int:
    if options.model:
        raise UsageError("reload is for a daemon, and --model asks a file")
    options.timeout = options.timeout or RELOAD_PATIENCE
    params = {} if options.bundle is None else {"bundle": os.path.abspath(options.bundle)}
    return tell(options, "reload", params, lambda r: text.say(f"serving digest {r['digest'][:12]}, generation {r['generation']}"))


def add_call(p: argparse.ArgumentParser) -> None:
    p.add_argument("method", help="e.g. compute_fk")
    p.add_argument("params", nargs="?", default="[]", metavar="JSON", help="an array or an object (default [])")
    p.epilog = "examples:\n  fkctl call compute_fk '[0,0,0,0,0,0]'\n  fkctl call compute_fk '{\"q\": [0,0,0,0,0,0], \"links\": \"all\"}'"
    p.set_defaults(run=call)


def call(options: argparse.Namespace) -> int:
    try:
        params = json.loads(options.params)
    except (ValueError, RecursionError) as e:
        why = "nested too deep" if isinstance(e, RecursionError) else e
        raise UsageError(f"the parameters are not JSON: {why}") from None
    if not isinstance(params, (list, dict)):
        raise UsageError(f"the parameters must be a JSON array or object, e.g. '[{options.params.strip()}]'")
    text.raw(target(options).ask(options.method, params))
    return 0
