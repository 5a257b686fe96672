"""Settings: a TOML file, then the environment, then the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkd.config import Config, ConfigError, parse_arguments
from fkd.server import Limits

NUMERIC = ["dof", "max_message", "max_connections"]


@pytest.fixture
def toml(tmp_path: Path):
    def write(text: str | bytes) -> str:
        path = tmp_path / "fkd.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def refusal(argv: list[str], environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as e:
        parse_arguments(argv, environ or {})
    return str(e.value)


def test_defaults() -> None:
    config = parse_arguments(["arm.zip"], {"XDG_RUNTIME_DIR": "/run/user/7"})
    assert config == Config(bundle="arm.zip", socket="/run/user/7/fkd.sock")
    assert (config.mode, config.group, config.tip, config.dof, config.allow_unhashed) == (0o660, None, None, None, False)
    assert config.limits == Limits()


@pytest.mark.parametrize(
    ("environ", "socket"),
    [
        ({}, "/run/fkd/fkd.sock"),
        ({"XDG_RUNTIME_DIR": "/x"}, "/x/fkd.sock"),
        ({"XDG_RUNTIME_DIR": "/x", "RUNTIME_DIRECTORY": "/r"}, "/r/fkd.sock"),
        ({"RUNTIME_DIRECTORY": "/r:/s"}, "/r/fkd.sock"),
        ({"RUNTIME_DIRECTORY": "/r", "FKD_SOCKET": "/f.sock"}, "/f.sock"),
        ({"XDG_RUNTIME_DIR": "", "FKD_SOCKET": ""}, "/run/fkd/fkd.sock"),
    ],
)
def test_the_default_socket(environ: dict[str, str], socket: str) -> None:
    assert parse_arguments(["arm.zip"], environ).socket == socket


def test_later_sources_win(toml) -> None:
    file = toml('tip = "file"\nbase = "file"\nmode = "0600"\nsocket = "/file"\nbundle = "file.zip"\nmax_message = 5\n')
    only_file = parse_arguments(["--config", file], {})
    assert (only_file.tip, only_file.base, only_file.mode, only_file.socket) == ("file", "file", 0o600, "/file")
    assert (only_file.bundle, only_file.limits.message) == ("file.zip", 5)
    environ = {"FKD_BASE": "env", "FKD_TIP": "env", "FKD_SOCKET": "/env", "FKD_MODE": "0640", "FKD_BUNDLE": "env.zip"}
    over = parse_arguments(["--config", file], environ)
    assert (over.tip, over.base, over.mode, over.socket, over.bundle) == ("env", "env", 0o640, "/env", "env.zip")
    flags = parse_arguments(["--config", file, "--tip", "flag", "--socket", "/flag", "--mode", "666", "flag.zip"], environ)
    assert (flags.tip, flags.base, flags.mode, flags.socket, flags.bundle) == ("flag", "env", 0o666, "/flag", "flag.zip")


def test_an_empty_variable_counts_as_not_set(toml) -> None:
    file = toml('tip = "file"')
    assert parse_arguments(["--config", file, "arm.zip"], {"FKD_TIP": "", "FKD_DOF": ""}).tip == "file"


def test_every_setting_can_come_from_the_file_and_from_the_environment(toml) -> None:
    values = {
        "bundle": "b", "socket": "/s", "tip": "t", "base": "c", "mode": "0600", "group": "g", "admin_group": "a", "expect_digest": "AB" * 32,
        "dof": 6, "allow_unhashed": True, "max_message": 7, "max_connections": 8, "drain_seconds": 0.5,
    }  # fmt: skip
    assert values.keys() == Config.__dataclass_fields__.keys()
    text = "\n".join(f"{k} = {str(v).lower() if isinstance(v, bool) else repr(v)}" for k, v in values.items())
    from_file = parse_arguments(["--config", toml(text)], {})
    from_environment = parse_arguments([], {f"FKD_{k.upper()}": str(v).lower() if isinstance(v, bool) else str(v) for k, v in values.items()})
    assert from_file == from_environment == Config(**{**values, "mode": 0o600, "expect_digest": "ab" * 32})


def test_no_robot_is_an_error() -> None:
    assert "no robot" in refusal([])


@pytest.mark.parametrize("argv", [["a.zip", "b.zip"], ["--nonsense"], ["--mode"]])
def test_unknown_words_end_with_status_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        parse_arguments(argv, {})
    assert e.value.code == 2
    assert "usage: fkd" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('tpi = "x"', "did you mean `tip`"), ("[limits]\nconnections = 3", "`limits`"), ("tip = 7", "expected a string, got 7"),
        ("mode = 660", '"0660"'), ("mode = 0o660", '"0660"'), ('mode = "rw"', '"0660"'), ('mode = "07777"', '"0660"'), ('mode = ""', '"0660"'),
        ('mode = "0o"', '"0660"'), ("dof = true", "whole number"), ("dof = 1.5", "whole number"), ("dof = -1", "whole number"),
        ("max_message = 0", "whole number"), ("max_connections = 0", "whole number"), ('dof = "six"', "whole number"),
        ("drain_seconds = -1", "seconds"), ("drain_seconds = nan", "seconds"), ("drain_seconds = inf", "seconds"),
        ("drain_seconds = true", "seconds"), ("drain_seconds = [1]", "seconds"), ('allow_unhashed = "perhaps"', "true or false"),
        ("allow_unhashed = 1", "true or false"), ("allow_unhashed = [true]", "true or false"), ('expect_digest = "abc"', "64 hex digits"),
        ("expect_digest = 1", "expected a string"), ('socket = "a\\u0000b"', "expected a string"), ("group = 1000", "expected a string"),
        ("tip = 1979-05-27", "expected a string"), ("tip =", "fkd.toml"), ('tip = "a"\ntip = "b"', "fkd.toml"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named_with_its_place(toml, text: str, words: str) -> None:
    message = refusal(["--config", toml(text), "arm.zip"])
    assert words in message
    assert "fkd.toml" in message


@pytest.mark.parametrize("text", [b"tip = '\xff'", b"dof = " + b"9" * 5000, b"tip = " + b"[" * 100_000, b"\x00"])
def test_a_file_that_is_hardly_toml_is_refused_by_name(toml, text: bytes) -> None:
    assert "fkd.toml" in refusal(["--config", toml(text), "arm.zip"])


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    assert "nowhere.toml" in refusal(["--config", str(tmp_path / "nowhere.toml"), "arm.zip"])
    assert str(tmp_path) in refusal(["--config", str(tmp_path), "arm.zip"])


@pytest.mark.parametrize("key", NUMERIC)
def test_numbers_are_refused_wherever_they_come_from(key: str) -> None:
    for text in ("six", "1.5", "-1", "1e3", "²", " ", "9" * 5000):
        message = refusal(["arm.zip"], {f"FKD_{key.upper()}": text})
        assert f"FKD_{key.upper()}" in message
        assert len(message) < 300


def test_a_flag_is_named_as_it_was_written() -> None:
    assert "--mode" in refusal(["--mode", "rw", "arm.zip"])
    assert "--expect-digest" in refusal(["--expect-digest", "abc", "arm.zip"])
    assert "--dof" in refusal(["--dof", "-1", "arm.zip"])


@given(st.dictionaries(st.sampled_from([f"FKD_{f.upper()}" for f in Config.__dataclass_fields__]), st.text(max_size=12)))
def test_any_environment_gives_a_config_or_a_clear_refusal(environ: dict[str, str]) -> None:
    try:
        config = parse_arguments(["arm.zip"], environ)
    except ConfigError as e:
        named = [name for name in environ if name in str(e)]
    else:
        named = ["none was wrong"]
        assert 0 <= config.mode <= 0o777
        assert config.limits.message > 0
    assert named
