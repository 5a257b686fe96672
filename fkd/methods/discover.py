"""rpc.discover."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from fkd.methods.daemon import fkd_version
from fkd.service import Session, Work
from fkd.wire import messages as m
from fkd.wire.jsonrpc import encode


def reference(
    methods: Mapping[str, Callable[..., Any]], parameters: Mapping[str, type[msgspec.Struct]]
) -> Callable[[Session, Raw], Work]:
    """The method rpc.discover, for these methods and their parameters by name. The document is made when it is first asked for."""
    made: list[bytes] = []

    def discover(_session: Session, params: Raw) -> Work:
        """The reference of the wire: this document."""
        m.read_nothing(params, "rpc.discover")
        if not made:
            from fkd.wire.openrpc import document  # a reference that few will read

            made.append(encode((yield from document(methods, parameters, fkd_version()))))
        return made[0]

    return discover
