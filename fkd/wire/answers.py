"""What each method answers, and how it may refuse: for `rpc.discover`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from fkd import errors as e
from fkd.wire import results as r


class Answer(NamedTuple):
    """What a method answers by name; by position, if that is another form: what it takes and answers; and its errors.

    either: whether by position it takes the same parameters, in the order of their type.
    """

    result: Any
    by_position: tuple[Any, Any] | None = None
    errors: tuple[type[e.FkdError], ...] = ()
    either: bool = False


QValues = Annotated[r.Numbers, Meta(description="q, rad or m: all independent joints' values in the order of `model`'s `q`.")]
Nothing = Annotated[list[Any], Meta(max_length=0, description="[]")]
KINEMATIC = (e.ModelError, e.ModelChanged)

ANSWERS: dict[str, Answer] = {
    "compute_fk": Answer(r.Poses, (QValues, r.Matrix), KINEMATIC),
    "compute_fk_batch": Answer(r.PoseRows, None, (*KINEMATIC, e.TooLarge)),
    "decompose": Answer(r.Decomposed, (QValues, r.Decomposed), KINEMATIC),
    "compute_jacobian": Answer(r.Jacobian, (QValues, r.Rows6), KINEMATIC),
    "compute_ik": Answer(r.Found, None, (*KINEMATIC, e.IkFailed)),
    "dh": Answer(r.DhTable, (Nothing, r.DhTable), KINEMATIC),
    "model": Answer(r.Model),
    "check": Answer(list[r.Finding], None, (e.ModelChanged,)),
    "status": Answer(r.Status),
    "stats": Answer(r.Stats),
    "ping": Answer(Literal["pong"]),
    "pin": Answer(r.Serving, None, (e.ModelChanged,), either=True),
    "reload": Answer(r.Serving, (Nothing, r.Serving), (e.NotPermitted, e.Overloaded, e.BundleRefused)),
    "rpc.discover": Answer(Annotated[dict[str, Any], Meta(description="An OpenRPC document, version 1.3.2.")]),
}
