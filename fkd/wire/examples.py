"""Questions and their answers, for `rpc.discover`; the tests ask them.

The robot is two slides along x, the second 0.125 m in front of the first: from the link `bed` by the joint `s1` to
`carriage`, by `s2` to `slide`, which is the tip.
"""

from __future__ import annotations

from typing import Any

Example = tuple[str, dict[str, Any], Any]  # its name, the parameters by name, the result

EXAMPLES: dict[str, list[Example]] = {
    "compute_fk": [
        ("the tip's matrix", {"q": [0.25, 0.5]}, {"poses": {"slide": [1, 0, 0, 0.875, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]}}),
        (
            "a tool on a link that is named, joints by name",
            {"q": {"s1": 0.25}, "missing": "zero", "links": ["carriage"], "tool": {"xyz": [0, 0, 0.5]}, "format": "pose"},
            {"poses": {"carriage": {"xyz": [0.25, 0, 0.5], "quaternion": [0, 0, 0, 1], "rpy": [0, 0, 0]}}},
        ),
    ],
    "compute_fk_batch": [
        (
            "two configurations",
            {"q": [[0.25, 0.5], {"s1": 0, "s2": 1}], "format": "ros"},
            {"poses": {"slide": [
                {"position": {"x": 0.875, "y": 0, "z": 0}, "orientation": {"x": 0, "y": 0, "z": 0, "w": 1}},
                {"position": {"x": 1.125, "y": 0, "z": 0}, "orientation": {"x": 0, "y": 0, "z": 0, "w": 1}},
            ]}},
        ),
    ],
    "decompose": [
        (
            "half a turn about x",
            {"xyz": [1, 2, 3], "quaternion": [1, 0, 0, 0]},
            {
                "xyz": [1, 2, 3], "rpy": [3.141592653589793, 0, 0], "rpy_alt": [0, 3.141592653589793, 3.141592653589793],
                "gimbal_lock": False, "quaternion": [1, 0, 0, 0],
                "axis_angle": {"axis": [1, 0, 0], "angle": 3.141592653589793},
                "matrix": [1, 0, 0, 1, 0, -1, 0, 2, 0, 0, -1, 3, 0, 0, 0, 1],
            },
        ),
    ],
    "compute_jacobian": [
        (
            "the tip's",
            {"q": [0.25, 0.5]},
            {
                "jacobian": [[1, 1], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], "joints": ["s1", "s2"], "manipulability": 0,
                "singular_values": [1.4142135623730951, 0],
            },
        ),
    ],
    "ping": [("somebody is", {}, "pong")],
}  # fmt: skip
BY_POSITION: dict[str, tuple[list[float], Any]] = {
    "compute_fk": ([0.25, 0.5], [1, 0, 0, 0.875, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]),
    "compute_jacobian": ([0.25, 0.5], [[1, 1], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]),
}
