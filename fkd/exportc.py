"""A robot as C99: forward kinematics and Jacobian for controllers that have no socket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from fkd.errors import InvalidParams
from fkd.kernel.emit_c import CFunction, CTable, emit_c, identifier
from fkd.kernel.program import Program
from fkd.model import Joint, Limits
from fkd.robot import Robot

MEANING = {"planar": ("x, m", "y, m", "theta, rad"), "floating": ("x, m", "y, m", "z, m", "qx", "qy", "qz", "qw")}


def export_c(
    robot: Robot, links: Sequence[str] | None = None, prefix: str | None = None, real: str = "double", command: str = ""
) -> tuple[str, str, str, str]:
    """(header name, header, source name, source) of C99 that needs <math.h> alone.

    links: for each, PREFIX_pose_LINK and PREFIX_jacobian_LINK, and PREFIX_poses for all of several; default the tip,
    with PREFIX_pose and PREFIX_jacobian. prefix: default the robot's name. real: "double" or "float".
    command: what the user typed, for the comment.
    Raises ModelError for unknown links or no tip, InvalidParams for what C cannot express.
    """
    if real not in ("double", "float"):
        raise InvalidParams(f"C export takes double or float, not `{real}`", reason="c-real", path="$.params.real",
                            expected="double or float", got=real)  # fmt: skip
    model = robot.model
    chosen = tuple(dict.fromkeys(model.require_link(link) for link in links)) if links else (model.require_tip(),)
    name = identifier(model.name if prefix is None else prefix)
    comment = [
        f"Forward kinematics of robot {model.name}",
        f"digest  {model.digest}",
        f"base    {model.base}",
        *(f"{'tip     ' if not links else 'link    '}{link}" for link in chosen),
        *([f"command {command}"] if command else []),
        "",
        *_conventions(robot, real),
    ]
    functions = _functions(robot, chosen, named=bool(links))
    macros: list[tuple[str, int | str]]
    macros = [("DOF", model.dof), ("LINKS", len(model.links)), ("DIGEST", model.digest)]
    try:
        header, source = emit_c(name, functions, _tables(robot), macros, comment, real)
    except ValueError as e:
        raise InvalidParams(f"robot `{model.name}` cannot be written as C: {e}", reason="c-range") from None
    return f"{name}_fk.h", header, f"{name}_fk.c", source


def _conventions(robot: Robot, real: str) -> list[str]:
    values = [(j.index + k, j, k) for j in robot.model.independent for k in range(j.width)]
    return [
        "Lengths in metre, angles in radian.",
        f"q      {robot.dof} values, the independent joints in this order:",
        *(f"         q[{place}]  {joint.name}: {_meaning(joint, k)}" for place, joint, k in values),
        "T      16 values, row-major: T_base_link, which takes coordinates in the link's frame into the base's;",
        "       the last row is 0 0 0 1.",
        f"J      6 x {robot.dof} values, row-major: linear (rows 0 to 2), then angular velocity (rows 3 to 5) of the",
        "       link per unit of each value of q, in the axes of the base, reference point at the link's origin.",
        "       Followers (mimic) are in their source's column.",
        "",
        "Functions may be called from several threads and from interrupts: they have no state and allocate nothing.",
        "All of q is read before anything is written: outputs may overlap q, but not each other. No alignment is",
        f"needed beyond that of {real}. Nothing is checked, limits neither: what depends on a value that is not finite,",
        "or on a quaternion of norm zero, comes out as NaN or infinity, unless -ffast-math lets the compiler forget it.",
    ]


def _meaning(joint: Joint, k: int) -> str:
    if joint.width > 1:
        return f"{joint.type}, {MEANING[joint.type][k]}"
    return f"{joint.type}, {'m' if joint.type == 'prismatic' else 'rad'}"


def _functions(robot: Robot, links: tuple[str, ...], named: bool) -> list[CFunction]:
    base = robot.model.base
    functions = []
    for link, ending in zip(links, _endings(links) if named else [""], strict=True):
        about = [f"q -> T, the pose of {link} in {base}."]
        functions.append(CFunction(f"pose{ending}", robot.kernels.program([link], base), ("T",), about))
        if robot.dof:  # else J has no columns
            about = [f"q -> T, the pose of {link} in {base}, and J, its Jacobian there."]
            functions.append(CFunction(f"jacobian{ending}", robot.kernels.jacobian_program(link, base), ("T", "J"), about))
    if len(links) > 1:  # together they share terms
        about = [f"q -> T, {len(links)} poses in {base}, of 16 values each:", *links]
        functions.append(CFunction("poses", _joined(robot.kernels.program(links, base)), ("T",), about))
    return functions


def _endings(links: Sequence[str]) -> list[str]:
    """What distinguishes the functions of each link: _NAME, with a number behind where names come out alike."""
    endings: list[str] = []
    for link in links:
        plain = "_" + identifier(link, "link")
        numbered = (f"{plain}_{k}" for k in range(2, len(links) + 2))
        endings.append(next(e for e in (plain, *numbered) if e not in endings))
    return endings


def _joined(program: Program) -> Program:
    """All outputs one behind the other, as one array of C takes them."""
    return replace(program, outputs=(tuple(place for group in program.outputs for place in group),))


def _tables(robot: Robot) -> list[CTable]:
    model = robot.model
    limits = [j.limits or Limits(None, None) for j in model.independent for _ in range(j.width)]
    return [
        CTable("joint_names", model.q_names, "For each value of q, the joint that it moves."),
        CTable("link_names", model.links, "All links, in the order of the description."),
        _bounds("lower", "lowest value, rad or m", [x.lower for x in limits], -inf),
        _bounds("upper", "highest value, rad or m", [x.upper for x in limits], inf),
        _bounds("velocity", "highest speed, rad/s or m/s", [x.velocity for x in limits], inf),
        _bounds("effort", "highest effort, N m or N", [x.effort for x in limits], inf),
    ]


def _bounds(name: str, meaning: str, values: Sequence[float | None], otherwise: float) -> CTable:
    doc = f"For each value of q, its {meaning}; infinite where the description sets none."
    return CTable(name, [otherwise if x is None else x for x in values], doc)
