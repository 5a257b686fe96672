"""A moment of the soak in every run of the tests, and that it sees what it looks for; `make soak` goes on for minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import soak
from bank import BAD, Bank

from fkd.robot import load


def test_a_moment_of_soak() -> None:
    assert soak.run(2.0) == []


def test_a_robot_that_differs_in_the_last_digits_is_noticed(tmp_path: Path) -> None:
    text = soak.ARM.read_text()
    assert '"0.0625 0 0"' in text
    other = tmp_path / "other.urdf"
    other.write_text(text.replace('"0.0625 0 0"', '"0.062500000000001 0 0"'))
    faults = soak.run(1.0, served=other)
    assert any("got" in fault and "compute" not in fault for fault in faults)


def test_memory_that_grows_and_files_left_open_are_noticed() -> None:
    flat, leaky = [30 << 20] * 200, [(30 << 20) + (n << 17) for n in range(200)]
    assert soak.grown(flat, 10, 10) == []
    assert soak.grown([60 << 20, *flat[1:]], 10, 9) == []  # only the start was larger
    assert "memory grew" in soak.grown(leaky, 10, 10)[0]
    assert "open files" in soak.grown(flat, 10, 11)[0]


def test_the_bank_is_right_about_poses_and_has_every_kind_of_question() -> None:
    robot = load(soak.ARM)
    bank = Bank([robot], seed=1)
    replies: list[dict[str, Any]] = []
    for line, answer in zip(bank.questions, bank.answers()[robot.digest], strict=True):
        if answer[:1] == b"{":
            replies.append(soak.json.loads(answer))
            asked = soak.json.loads(line) if "result" in replies[-1] else {}
            if asked.get("method") == "compute_fk" and isinstance(asked["params"], list):
                assert replies[-1]["result"] == robot.fk(asked["params"]).ravel().tolist()
    codes = {reply["error"]["code"] for reply in replies if "error" in reply}
    assert codes == {-32700, -32600, -32601, -32602, -32001, -32010, -32031}
    assert len(bank.questions) > 300 + len(BAD)
    assert len({reply["id"] for reply in replies}) > 300
