"""`<xacro:macro>`: what it declares, how a name finds it, and what its parameters get from a call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fkd.load.xacro.budget import Fault, suggest
from fkd.load.xacro.property import defined
from fkd.load.xacro.text import Texts
from fkd.load.xacro.values import Scope, literal, short
from fkd.load.xml import Element


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: `forward` takes the caller's property of that name (`^`), `default` stands where none is given."""

    name: str
    forward: bool = False
    default: str | None = None

    @property
    def block(self) -> bool:
        return self.name.startswith("*")


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro: parameters in the order of their declaration, and the element whose content is its body."""

    name: str
    parameters: dict[str, Parameter]
    body: Element


def declare(node: Element, name: str, scope: Scope) -> None:
    """Carry out one `<xacro:macro>`. Raises Fault (`xacro-macro`)."""
    name = name.removeprefix("xacro:")
    if name == "call" or "." in name:
        raise Fault("xacro-macro", f"`{short(name)}` cannot name a macro: `call` and names with a dot have a meaning")
    scope.macros[name] = Macro(name, parameters(node.attributes.get("params", "")), node)


def parameters(text: str) -> dict[str, Parameter]:
    """Read `params="a b:=1 c:='x y' d:=^ e:=^|2 *block **blocks"`. Raises Fault (`xacro-macro`)."""
    found: dict[str, Parameter] = {}
    at = _past_blanks(text, 0)
    while at < len(text):
        end = at
        while end < len(text) and not text[end].isspace() and text[end] not in ":=":
            end += 1
        name = text[at:end]
        at = _past_blanks(text, end)
        mark = next((m for m in (":=", "=") if text.startswith(m, at)), "")
        if not name or (not mark and text[end : end + 1] == ":"):
            raise Fault("xacro-macro", f'params="{short(text)}": a name is expected before `{text[end : end + 10]}`')
        if not mark:
            found[name] = Parameter(name)
            continue
        at = _past_blanks(text, at + len(mark))
        forward = text.startswith("^", at)
        at += 1 if forward else 0
        at += 1 if forward and text.startswith("|", at) else 0
        end = _default_end(text, at)
        found[name] = Parameter(name, forward, text[at:end] or None)
        at = _past_blanks(text, end)
    return found


def _past_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _default_end(text: str, at: int) -> int:
    """Where the default that starts at `at` ends: at a blank that is in no quotes and in no `${}` or `$()`."""
    closers = {"'": "'", '"': '"', "${": "}", "$(": ")"}
    while at < len(text) and not text[at].isspace():
        opening = text[at : at + 2] if text[at] == "$" else text[at]
        if opening in closers:
            close = text.find(closers[opening], at + len(opening))
            if close < 0:
                raise Fault("xacro-macro", f"params: `{opening}` is not closed in `{short(text[at:])}`")
            at = close + 1
        else:
            at += 1
    return at


def find(name: str, scope: Scope, others: Iterable[str]) -> tuple[Macro, Scope]:
    """The macro that a name means, with dots into name spaces, and the scope that its body sees.

    others: what else the name may have been meant for. Raises Fault (`xacro-undefined-macro`).
    """
    home: Scope | None = scope
    found = scope.macro(name)
    if not isinstance(found, Macro):
        *spaces, last = name.split(".")
        for space in spaces:
            inner = home.macro(space) if home else None
            home = inner if isinstance(inner, Scope) else None
        found = home.macro(last) if home else None
    if not isinstance(found, Macro) or home is None:
        hint = suggest(name, [*scope.macro_names(), *others])
        raise Fault("xacro-undefined-macro", f"no macro `{short(name)}`{hint}")
    return found, home


def bind(macro: Macro, inner: Scope, caller: Scope, blocks: list[Element], texts: Texts) -> None:
    """Give the blocks of a call, and the defaults, to the parameters that have no value yet.

    Defaults are computed in the caller's scope: they do not see each other. Raises Fault (`xacro-parameters`).
    """
    rest = iter(blocks)
    for parameter in macro.parameters.values():
        if parameter.block:
            block = next(rest, None)
            if block is None:
                raise Fault("xacro-parameters", f"the macro `{macro.name}` wants a block for `{parameter.name}`")
            inner.values[parameter.name] = block
    if (block := next(rest, None)) is not None:
        raise Fault("xacro-parameters", f"the macro `{macro.name}` has no parameter for the block <{block.tag}>")
    for parameter in macro.parameters.values():
        if parameter.name in inner.values:
            continue
        if parameter.forward and defined(parameter.name, caller):
            value = caller.lookup(parameter.name)
        elif parameter.default is not None:
            value = texts.evaluate(parameter.default, caller)
        else:
            what = "is not given" + (", nor is there a property of that name" if parameter.forward else "")
            raise Fault("xacro-parameters", f"the macro `{macro.name}`: the parameter `{parameter.name}` {what}")
        inner.values[parameter.name] = literal(value)
