"""The generated function of inverse kinematics: how far the tool is from its target, and one step towards it.

It is traced from the same kinematics as every other kernel, so that what is constant or shared in a robot's Jacobian is
folded away. That the step is computed even where it is not wanted costs less than to hand the Jacobian over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence

from fkd.kernel.emit_python import compile_python, function, source
from fkd.kernel.ik_column import Column
from fkd.kernel.jacobian import cross, pose_and_jacobian
from fkd.kernel.motion import EYE, Edge, Tree, forward, joined
from fkd.kernel.program import record
from fkd.kernel.scalar import Ref

Function = Callable[[list[float]], list[float]]

FLOOR = 1e-12  # damping that is always there, so that the matrix is positive definite whatever the chain
LARGE = 3.0  # damping stops to grow about this squared error: slides may have a long way to go, and may go it fast


def generate_step(
    tree: Tree, link: int, base: int, columns: Sequence[Column], units: Mapping[int, float], position_only: bool
) -> Generator[None, None, Function]:
    """Trace and compile the function of one chain, resting between the three parts of this, of some 5 ms each.

    It takes the values of the columns, a target as `Chain.target` makes it, the damping (over the squared error), and
    one weight for each bounded column: its own, or 0 to hold it fast. It returns four measures (the squared error, the
    squared position error, the squared sine and the cosine of the turn that is left) and for each column what it is to
    be moved by, before its weight. The squared error is the position's plus 4 sin^2 of half the turn, whose gradients
    are the position error and the sine times the axis.

    tree: with lengths in the chain's unit; units: factors that bring values of q to it, for those that need one.
    """
    n = len(columns)
    held = [j for j, c in enumerate(columns) if c.bounded]

    def step(inputs: Sequence[Ref]) -> Sequence[Sequence[Ref]]:
        q = _whole(inputs[:n], tree, columns, units)
        R_target, p_target, point = inputs[n : n + 9], inputs[n + 9 : n + 12], inputs[n + 12 : n + 15]
        # the tool's origin is one more fixed frame, whose place is not known yet
        mount = Edge("fixed", link, tuple(joined(EYE, point)), (1.0, 0.0, 0.0), -1, 1.0, 0.0)  # type: ignore[arg-type]
        T, rows = pose_and_jacobian(Tree((*tree.edges, mount), tree.width), q, len(tree.edges), base)
        error = [p_target[i] - T[4 * i + 3] for i in range(3)]
        square = squares(error)
        sine2: Ref = 0.0
        cosine: Ref = 1.0
        whole = square
        if not position_only:
            sines, cosine = turn_left([*T[0:3], *T[4:7], *T[8:11]], R_target)
            sine2 = squares(sines)
            whole = square + sine2 + (1.0 - cosine) * (1.0 - cosine)  # 2 - 2 cos, without loss where it is small
            error += sines  # the gradient of half of it; the step is Gauss and Newton's
        J = [[units.get(c.index, 1.0) * row[c.index] for c in columns] for row in rows[: len(error)]]
        weights: list[Ref] = [c.scale * c.scale for c in columns]
        for j, w in zip(held, inputs[n + 16 :], strict=True):
            weights[j] = w
        damping = inputs[n + 15] * whole / (1.0 + whole * (1.0 / LARGE)) + FLOOR
        return [[whole, square, sine2, cosine, *damped_step(J, error, damping, weights)]]

    program = record(n + 16 + len(held), step)
    yield
    text = source(program)
    yield
    return function(compile(text, "<fkd ik step>", "exec"))


def squares(v: Sequence[Ref]) -> Ref:
    """The sum of squares."""
    return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]


def turn_left(R: Sequence[Ref], R_target: Sequence[Ref]) -> tuple[list[Ref], Ref]:
    """From one rotation to another (9 scalars each): axis (in the base) times the angle's sine, and its cosine."""
    axis: list[Ref] = [0.0, 0.0, 0.0]
    trace: Ref = 0.0
    for i in range(3):
        a, b = [R[i], R[3 + i], R[6 + i]], [R_target[i], R_target[3 + i], R_target[6 + i]]
        axis = [x + y for x, y in zip(axis, cross(a, b), strict=True)]
        trace = trace + (a[0] * b[0] + a[1] * b[1] + a[2] * b[2])
    return [0.5 * x for x in axis], 0.5 * trace - 0.5


def generate_pose(tree: Tree, link: int, base: int, columns: Sequence[Column], units: Mapping[int, float]) -> Function:
    """Values of the columns -> T_base_link, 12 numbers, lengths as in the tree."""
    program = record(len(columns), lambda x: forward(tree, _whole(x, tree, columns, units), [link], base))
    return compile_python(program, "ik pose")


def _whole(x: Sequence[Ref], tree: Tree, columns: Sequence[Column], units: Mapping[int, float]) -> list[Ref]:
    """All of q, in the tree's unit of length; what moves nothing is 0."""
    q: list[Ref] = [0.0] * tree.width
    for c, value in zip(columns, x, strict=True):
        q[c.index] = units.get(c.index, 1.0) * value
    return q


def damped_step(J: Sequence[Sequence[Ref]], e: Sequence[Ref], damping: Ref, weights: Sequence[Ref]) -> list[Ref]:
    """J^T y with (J W J^T + damping I) y = e, by LDL^T without pivots: the matrix is positive definite.

    W times the result is the step that minimises |J dq - e|^2 + damping |dq|^2 in the metric of W. For a column held
    fast (weight 0) the result has the sign in which that column would still lower the error.
    """
    m, n = len(e), len(weights)
    L: list[list[Ref]] = [[0.0] * m for _ in range(m)]  # unit lower triangle, and U = L D
    U: list[list[Ref]] = [[0.0] * m for _ in range(m)]
    inverse: list[Ref] = []
    JW = [[J[i][j] * weights[j] for j in range(n)] for i in range(m)]
    for j in range(m):
        for i in range(j, m):
            s: Ref = damping if i == j else 0.0
            for c in range(n):
                s = s + JW[j][c] * J[i][c]
            for c in range(j):
                s = s - U[i][c] * L[j][c]
            U[i][j] = s
        inverse.append(1.0 / U[j][j])
        for i in range(j + 1, m):
            L[i][j] = U[i][j] * inverse[j]
    y = list(e)
    for i in range(m):
        for c in range(i):
            y[i] = y[i] - L[i][c] * y[c]
    y = [a * b for a, b in zip(y, inverse, strict=True)]
    for i in reversed(range(m)):
        for c in range(i + 1, m):
            y[i] = y[i] - L[c][i] * y[c]
    result: list[Ref] = []
    for j in range(n):
        s = 0.0
        for i in range(m):
            s = s + J[i][j] * y[i]
        result.append(s)
    return result
