"""A program -> a Python function for one configuration.

The function takes q as a sequence of exactly `width` numbers and returns one flat list per output group (a single
group: that list alone). A wrong count is Python's own ValueError; a zero quaternion is ZeroDivisionError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from fkd.kernel.program import Program

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
MAX_INLINE = 24  # levels of nested expression; Python's parser stops near 100


def source(program: Program, name: str = "kernel") -> str:
    """The text of the function. Terms that are read once are written where they are read."""
    uses = program.uses
    text: list[str] = []
    depth: list[int] = []
    lines: list[str] = []
    read = sorted(a for op, a, _ in program.nodes if op == "var")
    if program.width:
        taken = ", ".join(f"q{i}" if i in read else "_" for i in range(program.width))
        lines.append(f"    {taken}{',' if program.width == 1 else ''} = q")
    else:
        lines.append("    if len(q): raise ValueError")
    for place, (op, a, b) in enumerate(program.nodes):
        level = 0
        if op == "var":
            expression = f"q{a}"
        elif op == "const":
            expression = repr(program.constants[place])
        else:
            level = 1 + max(depth[p] for p in ((a,) if op in ("neg", "sin", "cos") else (a, b)))
            if op == "neg":
                expression = f"(-{text[a]})"
            elif op in ("sin", "cos"):
                expression = f"{op}({_bare(text[a])})"
            else:
                expression = f"({text[a]} {SIGNS[op]} {text[b]})"
            if uses[place] > 1 or level > MAX_INLINE:
                lines.append(f"    t{place} = {_bare(expression)}")
                expression, level = f"t{place}", 0
        text.append(expression)
        depth.append(level)
    groups = ["[" + ", ".join(_bare(text[p]) for p in group) + "]" for group in program.outputs]
    result = groups[0] if len(groups) == 1 else "(" + ", ".join(groups) + ("," if len(groups) else "") + ")"
    return "\n".join([f"def {name}(q):", *lines, f"    return {result}", ""])


def _bare(expression: str) -> str:
    """Without outer brackets, where the whole is one bracketed term."""
    if not expression.startswith("("):
        return expression
    level = 0
    for k, c in enumerate(expression):
        level += (c == "(") - (c == ")")
        if level == 0 and k < len(expression) - 1:
            return expression
    return expression[1:-1]


def compile_python(program: Program, label: str = "kernel") -> Callable[[Sequence[float]], Any]:
    """The function itself, named `label` in tracebacks and profiles."""
    return function(code(program, label))


def code(program: Program, label: str = "kernel") -> CodeType:
    """The compiled text, for `function`."""
    return compile(source(program), f"<fkd {label}>", "exec")


def function(compiled: CodeType) -> Callable[[Sequence[float]], Any]:
    """What `code` compiled, ready to call."""
    names: dict[str, Any] = {"sin": math.sin, "cos": math.cos, "inf": math.inf, "nan": math.nan}
    exec(compiled, names)  # noqa: S102 (our own text: operators, numbers and generated names only)
    # Taken out of its own globals, it is in no ring, and goes with its robot without the garbage collector.
    kernel: Callable[[Sequence[float]], Any] = names.pop("kernel")
    return kernel
