"""compute_fk, compute_fk_batch and decompose."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from msgspec import Raw

from fkd.errors import InvalidParams, TooLarge
from fkd.methods.reading import read_links, read_pose, read_tool
from fkd.poses import decomposed, read_matrix, read_parts, written
from fkd.service import Session, Work
from fkd.wire import messages as m
from fkd.wire.jsonrpc import encode

MAX_POSES = 100_000  # in one answer of compute_fk_batch: some 30 MB, which can only be sent together
JOINED = 16  # steps of rows that are sent together, some 80 kB
STEP = 16  # poses that are computed and written between two looks at other clients: some 0.1 ms


def compute_fk(session: Session, params: Raw) -> bytes:
    """The pose of links at a joint configuration.

    By position, `[q1 .. qn]`, the way of a controller: the 16 numbers of T_base_tip. Joint limits are not enforced.
    """
    given = m.compute_fk.decode(params)
    if isinstance(given, list):
        return encode(session.robot.pose(given))
    start = time.perf_counter_ns()
    robot = session.robot
    q = robot.configuration(m.read_q(given.q), degrees=given.degrees, missing=given.missing)
    tool = read_tool(given.tool)
    poses = robot.poses(q, read_links(robot, given.links), given.base, tool)
    result: dict[str, Any] = {"poses": {link: written(T, given.format) for link, T in poses.items()}}
    if given.stamp:
        result |= {"digest": robot.digest, "generation": session.service.generation, "elapsed_ns": time.perf_counter_ns() - start}
    return encode(result)


def compute_fk_batch(session: Session, params: Raw) -> Work:
    """The poses of links at many configurations.

    At most 100000 poses are answered at once. Other callers have their turns meanwhile.
    """
    given = m.compute_fk_batch.decode(params)
    start = time.perf_counter_ns()
    robot, generation = session.robot, session.service.generation
    links = read_links(robot, given.links)
    tool = read_tool(given.tool)
    if len(given.q) * len(links) > MAX_POSES:
        raise TooLarge(f"{len(given.q)} rows of {len(links)} links are {len(given.q) * len(links)} poses; at most {MAX_POSES} "
                       "are answered at once, ask for the rest in further calls", limit=MAX_POSES, got=len(given.q) * len(links))
    robot.kernels.poses(links, robot.model.base if given.base is None else given.base)  # names are looked up also for no rows
    texts: dict[str, list[bytes]] = {link: [] for link in links}
    step = max(1, STEP // len(links))
    for first in range(0, len(given.q), step):
        found: dict[str, list[Any]] = {link: [] for link in links}
        for k, row in enumerate(given.q[first : first + step], first):
            where = f"$.params.q[{k}]"
            q = robot.configuration(m.read_row(row, where), degrees=given.degrees, missing=given.missing, path=where)
            for link, T in robot.poses(q, links, given.base, tool, path=where).items():
                found[link].append(written(T, given.format))
        for link in links:
            texts[link].append(encode(found[link])[1:-1])
        yield None
    stamp = b""
    if given.stamp:
        stamp = b",%b" % encode({
            "digest": robot.digest, "generation": generation, "elapsed_ns": time.perf_counter_ns() - start,
        })[1:-1]  # fmt: skip
    return (yield from _in_pieces(texts, stamp))


def _in_pieces(texts: dict[str, list[bytes]], stamp: bytes) -> Generator[None, None, list[bytes]]:
    """{"poses": {link: [what its texts say]}} and the stamp, in pieces that take no time to send."""
    pieces = [b'{"poses":{']
    for k, (link, parts) in enumerate(texts.items()):
        pieces.append(b"%b%b:[" % (b"," if k else b"", encode(link)))
        for first in range(0, len(parts), JOINED):
            pieces.append((b"," if first else b"") + b",".join(parts[first : first + JOINED]))
            yield
        pieces.append(b"]")
    return [*pieces, b"}%b}" % stamp]


def decompose(session: Session, params: Raw) -> bytes:
    """A pose in all its forms: xyz, both answers for roll-pitch-yaw, quaternion, axis and angle, matrix.

    By position, `[q1 .. qn]`: that of the model's tip in its base.
    """
    given = m.decompose.decode(params)
    robot = session.robot
    if isinstance(given, list):
        return encode(decomposed(robot.pose(given)))
    forms = {
        "q": given.q, "matrix": given.matrix, "pose": given.pose,
        "xyz with quaternion or rpy": next((v for v in (given.xyz, given.quaternion, given.rpy) if v is not None), None),
    }  # fmt: skip
    chosen = [name for name, value in forms.items() if value is not None]
    if len(chosen) != 1:
        raise InvalidParams(f"decompose takes one of {', '.join(forms)}", reason="pose-form", path="$.params",
                            expected="one pose", got=" and ".join(chosen) or "none")
    if given.q is not None:
        q = robot.configuration(m.read_q(given.q), degrees=given.degrees, missing=given.missing)
        link = given.link if given.link is not None else robot.model.require_tip()
        return encode(decomposed(robot.poses(q, (link,), given.base)[link]))
    if given.link is not None or given.base is not None or given.degrees or given.missing != "error":
        raise InvalidParams("link, base, degrees and missing go with q, not with a pose that is given", reason="pose-form",
                            path="$.params", expected="the pose alone", got=chosen[0])
    if given.matrix is not None:
        return encode(decomposed(read_matrix(given.matrix, "$.params.matrix")))
    if given.pose is not None:
        return encode(decomposed(read_pose(given.pose, "$.params.pose")))
    return encode(decomposed(read_parts(given.xyz, given.quaternion, given.rpy, "$.params")))
