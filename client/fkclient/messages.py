"""The verbs of the wire, once for both clients: what to send, and how to read what comes back. Without I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from fkclient.arguments import array_to_list, flat_pose, json_bytes, number_bytes, numpy_of, q_bytes
from fkclient.errors import BadReply, BadValue
from fkclient.options import FkOptions
from fkclient.replies import Reply

_FK_REPLY = msgspec.json.Decoder(Reply[Annotated[list[float], msgspec.Meta(min_length=16, max_length=16)]])
_ANY_REPLY = msgspec.json.Decoder(Reply[Any])


class Call(msgspec.Struct, gc=False):
    """One request to be, and how to read its reply."""

    method: str
    head: bytes  # the request up to its id, or up to its params if those are given later
    decoder: msgspec.json.Decoder[Reply[Any]] = _ANY_REPLY
    read: Callable[[Any], Any] | None = None  # the wire's result -> what the caller gets; None: as it is

    def request(self, ident: int, params: bytes = b"") -> bytes:
        """The whole line to send."""
        return b'%b%b,"id":%d}\n' % (self.head, params, ident)

    def decode(self, line: bytes) -> Reply[Any]:
        """The reply to this call. Raises BadReply if its result has another shape."""
        try:
            return self.decoder.decode(line)
        except (ValueError, RecursionError) as e:
            raise BadReply(f"the result of {self.method} is not of the expected shape: {e}") from e

    def answer(self, reply: Reply[Any]) -> Any:
        """What the caller gets. Raises RpcError if the reply is an error, BadReply if it has another shape."""
        if reply.error is not None:
            raise reply.error.exception()
        if reply.result is msgspec.UNSET:
            raise BadReply(f"the reply to {self.method} has neither a result nor an error")
        if self.read is None:
            return reply.result
        try:
            return self.read(reply.result)
        except (ValueError, TypeError, LookupError) as e:
            raise BadReply(f"the result of {self.method} is not of the expected shape: {e!r}") from e


FK = Call("compute_fk", b'{"jsonrpc":"2.0","method":"compute_fk","params":', _FK_REPLY)
"""By position, the way of a controller, 1000 times a second: made once, its params are given with each request."""


def _call(method: str, params: bytes | None, read: Callable[[Any], Any] | None = None) -> Call:
    member = b"" if params is None else b',"params":' + params
    head = b'{"jsonrpc":"2.0","method":%b%b' % (json_bytes(method, "method"), member)
    return Call(method, head, read=read)


def _named(method: str, members: Mapping[str, Any], read: Callable[[Any], Any] | None = None) -> Call:
    """A call by name, without the options that are None."""
    given = {k: v for k, v in members.items() if v is not None or k in ("q", "pose")}
    parts = [b"%b:%b" % (json_bytes(k, k), _member(k, v)) for k, v in given.items()]
    return _call(method, b"{%b}" % b",".join(parts), read)


def _member(name: str, value: Any) -> bytes:
    if name == "q":
        return q_bytes(value)
    if name in ("pose", "tool"):
        return number_bytes(flat_pose(value), name)
    if name in ("matrix", "seed"):
        return number_bytes(value, name)
    return json_bytes(value, name)


_FK_DEFAULTS = {"degrees": False, "format": "matrix", "missing": "error", "stamp": False}


def fk(q: Any, options: FkOptions, batch: bool = False) -> Call:
    """`compute_fk`, by position if nothing but q is given, else by name; or `compute_fk_batch`."""
    numpy = numpy_of(q)
    if numpy is not None:
        q = array_to_list(q, 2 if batch else 1)
    chosen = {k: v for k, v in options.items() if v is not None and not (k in _FK_DEFAULTS and v == _FK_DEFAULTS[k])}
    if not chosen and not batch and not isinstance(q, Mapping):
        read = None if numpy is None else lambda flat: numpy.array(flat).reshape(4, 4)
        return Call("compute_fk", FK.head + q_bytes(q), _FK_REPLY, read)
    if "format" in chosen:
        numpy = None  # the other forms of a pose are dicts
    reader = _poses_reader(chosen, batch, numpy)
    links = chosen.get("links")
    if isinstance(links, str) and links != "all":
        chosen["links"] = [links]
    return _named("compute_fk_batch" if batch else "compute_fk", {"q": q, **chosen}, reader)


def _poses_reader(options: Mapping[str, Any], batch: bool, numpy: Any) -> Callable[[Any], Any]:
    """Reads {"poses": {link: pose}} and gives what `Client.fk` promises for these options."""
    links, stamp = options.get("links"), "stamp" in options

    def read(result: dict[str, Any]) -> Any:
        poses: dict[str, Any] = dict(result["poses"])
        if numpy is not None:
            shape = (-1, 4, 4) if batch else (4, 4)
            poses = {link: numpy.array(pose, dtype=float).reshape(shape) for link, pose in poses.items()}
        if stamp:
            return {**result, "poses": poses}
        if isinstance(links, str) and links != "all":
            return poses[links]
        if numpy is not None and links is None and not batch:
            (pose,) = poses.values()  # the tip's, whose name the caller need not know
            return pose
        return poses

    return read


def decompose(q: Any, named: Mapping[str, Any]) -> Call:
    """`decompose` of q, by position if nothing else is given; or of a matrix or a pose."""
    members = {k: v for k, v in {"q": q, **named}.items() if v is not None and v is not False}
    given = [name for name in ("q", "matrix", "pose") if name in members]
    if len(given) != 1:
        raise BadValue(f"decompose takes exactly one of q, matrix and pose; given: {' and '.join(given) or 'none'}")
    read = _arrays_reader(members[given[0]])
    if len(members) == 1 and q is not None and not isinstance(q, Mapping):
        return _call("decompose", q_bytes(q), read)
    return _named("decompose", members, read)


def jacobian(q: Any, named: Mapping[str, Any]) -> Call:
    """`compute_jacobian`, by position if nothing but q is given, else by name."""
    if not named and not isinstance(q, Mapping):
        return _call("compute_jacobian", q_bytes(q), _arrays_reader(q))
    return _named("compute_jacobian", {"q": q, **named}, _arrays_reader(q))


def ik(pose: Any, named: Mapping[str, Any]) -> Call:
    """`compute_ik`."""
    return _named("compute_ik", {"pose": pose, **named}, _arrays_reader(pose, named.get("seed")))


def dh(named: Mapping[str, Any]) -> Call:
    """`dh`."""
    return _named("dh", named)


def plain(method: str) -> Call:
    """A method without parameters, such as `model`."""
    return _call(method, b"[]")


def pin(digest: str) -> Call:
    """`pin`: binds the connection to the model with this digest."""
    return _call("pin", json_bytes([digest], "expect_digest"))


def pinned_digest(params: Any) -> str | None:
    """The digest in the params of a `pin` written by hand; None if there is none, which the daemon will refuse."""
    digest = params.get("digest") if isinstance(params, Mapping) else next(iter(params or ()), None)
    return digest if isinstance(digest, str) else None


def call(method: str, params: Sequence[Any] | Mapping[str, Any] | None) -> Call:
    """Any method; the result is the wire's."""
    if not isinstance(method, str):
        raise BadValue(f"method is a {type(method).__name__}; expected a name, such as 'compute_fk'")
    if params is None:
        return _call(method, None)
    if isinstance(params, (str, bytes, bytearray)) or not isinstance(params, (Sequence, Mapping)):
        raise BadValue(f"params is a {type(params).__name__}; expected a list, a dict or None")
    return _call(method, json_bytes(params, "params"))


def _arrays_reader(*arguments: Any) -> Callable[[Any], Any] | None:
    """Reads results with arrays in place of lists of numbers, if one of the arguments is an array; else None."""
    numpy = numpy_of(*arguments)
    if numpy is None:
        return None

    def read(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {k: read(v, k) for k, v in value.items()}
        if not isinstance(value, list):
            return value
        first = value
        while isinstance(first, list) and first:
            first = first[0]
        if not isinstance(first, (int, float)):
            return [read(v) for v in value]
        array = numpy.array(value, dtype=float)
        return array.reshape(4, 4) if name == "matrix" else array

    return read
