"""A moment of chaos in every run of the tests, and that it sees what it looks for; `make chaos` goes on for a minute."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import bank
import chaos
import pytest
from stream import Stream
from supervisor import Supervisor
from world import World

from fkd.robot import load


def test_a_moment_of_chaos(capsys: pytest.CaptureFixture[str]) -> None:
    assert chaos.run(3.0, seed=1) == []
    assert "wrong answers: 0" in capsys.readouterr().out


def test_an_answer_that_is_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = bank.answers

    def answers(*arguments: Any) -> list[bytes]:
        return [answer.replace(b".", b".0", 1) for answer in right(*arguments)]

    monkeypatch.setattr(bank, "answers", answers)
    assert any("got" in fault for fault in chaos.run(1.0))


def test_an_end_that_nobody_asked_for_is_noticed(short_folder: Path) -> None:
    with Supervisor(short_folder, chaos.ARM) as supervisor:
        robot = load(chaos.ARM)
        world = World(supervisor, bank.Bank([robot], seed=0), robot.digest)

        def murder(stream: Stream) -> None:
            os.kill(stream.pid, signal.SIGKILL)
            stream.exchange(b"", 1)

        world.connection("victim", murder)
        supervisor.ready()
        world.connection("next", lambda stream: None)
    assert len(world.book.unexplained) == 1
    assert [fault.split(",")[0] for fault in supervisor.faults] == ["a daemon ended with status -9"]
    assert world.book.ends == {("victim", "UNEXPLAINED"): 1, ("next", "closed by the client"): 1}


def test_an_end_that_was_asked_for_is_explained(short_folder: Path) -> None:
    with Supervisor(short_folder, chaos.ARM) as supervisor:
        robot = load(chaos.ARM)
        world = World(supervisor, bank.Bank([robot], seed=0), robot.digest)

        def kill(stream: Stream) -> None:
            supervisor.send(signal.SIGKILL)
            stream.exchange(b"", 1)

        world.connection("victim", kill)
        supervisor.ready()
    assert world.book.unexplained == supervisor.faults == []
    assert world.book.ends == {("victim", "EOF after kill -9"): 1}
