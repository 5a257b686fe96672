"""The grammar of expressions: Python's parser, then a list of what may be in the tree. Nothing is evaluated here."""

from __future__ import annotations

import ast
import warnings

from fkd.load.xacro.budget import MAX_BITS, Fault
from fkd.load.xacro.values import short

MAX_EXPRESSION = 8192  # characters: the parser's own limits then end every nesting cleanly
MAX_TREE = 100  # levels; each costs two Python frames

ALLOWED: tuple[type[ast.AST], ...] = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Starred, ast.Call, ast.keyword,
    ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.List, ast.Tuple, ast.Dict, ast.Lambda,
    ast.arguments, ast.arg, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.comprehension,
    ast.Load, ast.Store, ast.And, ast.Or, ast.Not, ast.UAdd, ast.USub, ast.Invert,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr,
    ast.BitXor, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn,
)
_LITERALS = (int, float, str, bool, type(None))


def parse(text: str) -> ast.expr:
    """Read one expression.

    Raises Fault (`xacro-expression`) if it is malformed, too deep, or holds what the language does not have.
    """
    if len(text) > MAX_EXPRESSION:
        raise Fault("xacro-expression", f"an expression of more than {MAX_EXPRESSION} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "invalid escape sequence" is no concern of the daemon's log
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as e:
        what = e.msg if isinstance(e, SyntaxError) else str(e)
        raise Fault("xacro-expression", f"`{short(text)}` is not an expression: {what}") from None
    except MemoryError:  # what the parser says of too many brackets or signs
        raise Fault("xacro-expression", f"`{short(text)}` is nested too deeply") from None
    stack: list[tuple[ast.AST, int]] = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_TREE:
            raise Fault("xacro-expression", f"`{short(text)}` is nested deeper than {MAX_TREE}")
        if problem := _problem(node):
            raise Fault("xacro-expression", f"`{short(text)}`: {problem}")
        stack.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
    return tree


def _problem(node: ast.AST) -> str:
    """Why a node may not be there; empty if it may."""
    if not isinstance(node, ALLOWED):
        return f"{type(node).__name__} is not part of the expression language"
    if isinstance(node, ast.Constant):
        if type(node.value) not in _LITERALS:
            return "a literal of this kind is not supported"
        if type(node.value) is int and node.value.bit_length() > MAX_BITS:
            return f"an integer of more than {MAX_BITS} bits"
    if isinstance(node, ast.comprehension) and node.is_async:
        return "async is not supported"
    name = getattr(node, _NAMED.get(type(node), ""), None) or ""
    return f"the name `{short(name)}` is not allowed" if name.startswith("__") else ""


_NAMED: dict[type[ast.AST], str] = {ast.Name: "id", ast.Attribute: "attr", ast.keyword: "arg", ast.arg: "arg"}
