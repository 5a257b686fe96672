"""The verb `ik` of both clients against a real daemon: solutions, and the nearest in the error."""

from __future__ import annotations

import numpy as np
import pytest
from fkclient import AsyncClient, Client, RpcError

Q = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
FAR = {"xyz": [9, 0, 0], "rpy": [0, 0, 0]}


def test_ik_of_a_daemon(daemons) -> None:
    with Client(daemons("wire_arm.urdf").path, timeout=30) as robot:
        pose = robot.fk(np.array(Q))
        for given in (pose, robot.fk(Q), {"matrix": robot.fk(Q)}):
            found = robot.ik(given, seed=np.array(Q), solutions="nearest", timeout_ms=500)
            assert found["solutions"][0]["q"] == pytest.approx(Q)
        with pytest.raises(RpcError) as e:
            robot.ik(FAR, timeout_ms=10_000)
        assert (e.value.code, e.value.reason) == (-32010, "unreachable")
        assert len(e.value.data["nearest"]["q"]) == 6
        assert robot.ik(FAR, best_effort=True)["solutions"][0]["converged"] is False


async def test_ik_of_a_daemon_asynchronously(daemons) -> None:
    async with AsyncClient(daemons("wire_arm.urdf").path, timeout=30) as robot:
        found = await robot.ik(await robot.fk(Q), seed={"j1": 0.1}, solutions="all", method="analytic")
        assert min(np.abs(np.subtract(s["q"], Q)).max() for s in found["solutions"]) < 1e-6
        with pytest.raises(RpcError) as e:
            await robot.ik(FAR, position_only=True)
        assert e.value.data["nearest"]["orientation_error"] is None
        assert e.value.data["position_error"] > 7
