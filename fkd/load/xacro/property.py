"""`<xacro:property>`: what a property is called, where it is put, and when it is computed."""

from __future__ import annotations

import keyword

from fkd.load.xacro.budget import Fault
from fkd.load.xacro.functions import CONSTANTS
from fkd.load.xacro.host import Host
from fkd.load.xacro.values import Lazy, Scope, literal, short
from fkd.load.xml import Element


def define(host: Host, node: Element, scope: Scope) -> None:
    """Carry out one `<xacro:property>`. Raises Fault (`xacro-property`)."""
    given = node.attributes
    name = host.texts.string(host.wanted(node, "name", "value", "default", "remove", "scope", "lazy_eval"), scope)
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
        raise Fault("xacro-property", f"`{short(name)}` cannot name a property: a plain identifier is wanted")
    remove = host.condition(node, given.get("remove") or "false", scope)
    if ("value" in given) + ("default" in given) + remove > 1:
        raise Fault("xacro-property", f"the property `{name}`: `value`, `default` and `remove` exclude each other")
    if remove:
        for level in scope.levels():
            level.values.pop(name, None)
        return
    if "default" in given and defined(name, scope):
        return
    text = given.get("value", given.get("default"))
    lazy = host.condition(node, given.get("lazy_eval") or "true", scope)
    target = scope
    if given.get("scope") in ("global", "parent"):
        lazy = False
        target = _outer(name, scope, given["scope"])
    if name in CONSTANTS:
        host.say("xacro-constant", "warning", f"the property `{name}` hides a name of the language")
    if text is None:
        target.values[f"**{name}"] = node
        return
    value = literal(text if lazy else host.texts.evaluate(text, scope))
    target.values[name] = Lazy(value, node.file, node.line) if lazy and isinstance(value, str) else value


def defined(name: str, scope: Scope) -> bool:
    """Whether a name has a value here."""
    return name in CONSTANTS or any(name in level.values for level in scope.levels())


def _outer(name: str, scope: Scope, which: str) -> Scope:
    """The scope that `scope="parent"` or `scope="global"` means: from a macro, its caller's, past name spaces."""
    levels = list(scope.levels())
    if which == "global":
        return levels[-1]
    for level in levels[1:]:
        if scope.named or not level.named:
            return level
    raise Fault("xacro-property", f"the property `{name}`: there is no parent scope outside of macros")
