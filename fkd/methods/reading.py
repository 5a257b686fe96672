"""From the wire's words to the robot's: links, poses, configurations."""

from __future__ import annotations

from fkd.errors import InvalidParams
from fkd.poses import Matrix, read_matrix, read_parts
from fkd.robot import Robot
from fkd.wire import messages as m


def read_links(robot: Robot, links: list[str] | str | None) -> tuple[str, ...]:
    """`links` as a caller says it -> names: default the tip, "all" for every link, a name alone for itself."""
    if links is None:
        return (robot.model.require_tip(),)
    if isinstance(links, str):
        return robot.links if links == "all" else (links,)
    if not links:
        raise InvalidParams("`links` is empty; name at least one, or leave it out for the tip", reason="links-empty",
                            path="$.params.links", expected='names, or "all"', got="[]")
    return tuple(dict.fromkeys(links))


def read_pose(pose: m.Pose, path: str) -> Matrix:
    """A pose as it comes over the wire -> 16 numbers. Raises InvalidParams."""
    if isinstance(pose, list):
        return read_matrix(pose, path)
    given = [name for name in pose.__struct_fields__ if getattr(pose, name) is not None]
    if pose.matrix is not None and given == ["matrix"]:
        return read_matrix(pose.matrix, f"{path}.matrix")
    if pose.position is not None and pose.orientation is not None and given == ["position", "orientation"]:
        p, o = pose.position, pose.orientation
        return read_parts((p.x, p.y, p.z), (o.x, o.y, o.z, o.w), None, path)
    if given and not set(given) & {"matrix", "position", "orientation"}:
        return read_parts(pose.xyz, pose.quaternion, pose.rpy, path)
    raise InvalidParams(f"{path}: give a pose in one form", reason="pose-form", path=path, got=given,
                        expected="matrix; xyz with quaternion or rpy; or position with orientation")


def read_tool(tool: m.Pose | None) -> Matrix | None:
    """T_link_tool as a caller gives it, if at all."""
    return None if tool is None else read_pose(tool, "$.params.tool")
