"""Every error that fkd reports: one class = one JSON-RPC code = one shape of data.

Nothing here knows where an error came from; nothing in fkd invents a code elsewhere.

| class            |   code | when                                            | data beside `reason`                          |
|------------------|--------|-------------------------------------------------|-----------------------------------------------|
| `ParseError`     | -32700 | the bytes are not JSON                          | `expected`, `got`                             |
| `InvalidRequest` | -32600 | JSON, but not a JSON-RPC 2.0 request            | `path`, `expected`, `got`                     |
| `MethodNotFound` | -32601 | no such method                                  | `name`, `did_you_mean`                        |
| `InvalidParams`  | -32602 | wrong type, count or value of a parameter       | `path`, `expected`, `got`, `did_you_mean`     |
| `InternalError`  | -32603 | a fault of fkd itself                           |                                               |
| `ModelError`     | -32001 | a name or tip that this robot does not have     | `path`, `name`, `did_you_mean`, `candidates`  |
| `IkFailed`       | -32010 | no solution within tolerance                    | `nearest`, `position_error`, `orientation_error`, `iterations`, `restarts`, `method` |
| `LimitsError`    | -32011 | a joint value outside its limits, where asked   | `path`, `expected`, `got`                     |
| `ModelChanged`   | -32012 | the daemon now serves another model             | `expected`, `got`                             |
| `NotPermitted`   | -32020 | the caller may not do this                      | `expected`, `got`                             |
| `Overloaded`     | -32030 | too many connections or too much pending work   | `limit`                                       |
| `TooLarge`       | -32031 | a message or reply over a limit                 | `limit`, `got`                                |
| `BundleRefused`  | -32040 | a bundle or description that must not be served | `member`, `members`, `file`, `line`, `findings`, `candidates`, `did_you_mean`, `expected`, `got` |
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from operator import add
from typing import Any, ClassVar, NamedTuple


class FkdError(Exception):
    """The root of all errors that a user may see.

    `message` says in one sentence what was given, what was expected and how to mend it. `reason` is a
    stable slug for programs. Other keywords become the members of the wire's `data`; None is left out.
    """

    code: ClassVar[int] = -32603
    default_reason: ClassVar[str] = "internal"

    def __init__(self, message: str, *, reason: str | None = None, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.default_reason
        self.data: dict[str, Any] = {k: v for k, v in data.items() if v is not None}

    def __str__(self) -> str:
        return self.message


class ParseError(FkdError):
    code, default_reason = -32700, "parse-error"


class InvalidRequest(FkdError):
    code, default_reason = -32600, "invalid-request"


class MethodNotFound(FkdError):
    code, default_reason = -32601, "unknown-method"


class InvalidParams(FkdError):
    code, default_reason = -32602, "invalid-params"


class InternalError(FkdError):
    code, default_reason = -32603, "internal"


class ModelError(FkdError):
    code, default_reason = -32001, "unknown-name"


class IkFailed(FkdError):
    code, default_reason = -32010, "unreachable"


class LimitsError(FkdError):
    code, default_reason = -32011, "limits"


class ModelChanged(FkdError):
    code, default_reason = -32012, "model-changed"


class NotPermitted(FkdError):
    code, default_reason = -32020, "not-permitted"


class Overloaded(FkdError):
    code, default_reason = -32030, "overloaded"


class TooLarge(FkdError):
    code, default_reason = -32031, "too-large"


class BundleRefused(FkdError):
    """A bundle, or a description in it, that must not be served. Each kind has its own `reason`."""

    code, default_reason = -32040, "bundle-refused"


class Finding(NamedTuple):
    """One thing that `check` has to say about a description.

    `code` is stable (`urdf-axis-zero`); `severity` is "error", "warning" or "info"; `file` and `line` name the
    place (line 0: the file as a whole); `hint` says how to mend it, or is empty.
    """

    code: str
    severity: str
    file: str
    line: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}: {self.severity}: {self.message} [{self.code}]{hint}"


def cut(text: str, length: int = 80) -> str:
    """A caller's text as a message may repeat it: no longer than `length`."""
    return text if len(text) <= length else text[: length - 3] + "..."


CLOSE = 0.55  # of 1, which only the same letters in the same pairs reach


def _features(name: str) -> frozenset[str]:
    """The letters of a name and its pairs of neighbours: most of them outlast a slip of the fingers."""
    return frozenset(name).union(map(add, name, name[1:]))


_known = lru_cache(2048)(_features)  # of names that exist; whatever else comes is compared with the same ones


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` was most likely meant to be, or None if none is close.

    Some 0.5 us a candidate, so that a client that misspells a thousand times a second costs no more than one that does not.
    Source: Dice, "Measures of the amount of ecologic association between species" (1945), on letters and pairs of letters.
    """
    if not 0 < len(name) <= 256:  # what is that long was not meant to be a name
        return None
    name = name.casefold()
    wanted = _features(name)
    best, most = None, CLOSE
    for candidate in candidates:
        folded = candidate.casefold()
        if folded == name:
            return candidate
        has = _known(folded)
        alike = 2 * len(wanted & has) / (len(wanted) + len(has))
        if alike > most:
            best, most = candidate, alike
    return best


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """`nearest` as the tail of a sentence: "; did you mean `x`?", or nothing."""
    near = nearest(name, candidates)
    return f"; did you mean `{near}`?" if near else ""
