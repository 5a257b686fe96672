"""The words that a user may type, and what becomes of them."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fkd.ctl import live, poses
from fkd.ctl.main import COMMANDS, Parser, common_parser, main, split

# -- help --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_that_is_its_own(fkctl, name):
    ran = fkctl(name, "--help")
    assert ran.status == 0
    assert ran.out.startswith(f"usage: fkctl {name}")
    examples = [line for line in ran.out.partition("examples:\n")[2].splitlines() if line.startswith("  fkctl ")]
    assert examples, "no example"
    assert all(name in split(line.split()[1:])[1] for line in examples)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--json", "--help"]])
def test_the_overview_names_every_command(fkctl, words):
    ran = fkctl(*words)
    assert ran.status == 0
    listed = [line.split()[0] for line in ran.out.partition("commands:\n")[2].splitlines() if line.startswith("  ")]
    assert listed == list(COMMANDS)


def test_help_before_the_command_is_the_commands(fkctl):
    assert fkctl("--help", "fk") == fkctl("fk", "-h")


# -- usage -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "no command; `fkctl --help` lists them"),
        (["--json"], "no command;"),
        (["fkk"], "no command `fkk`; did you mean `fk`?"),
        (["FK"], "no command `FK`; did you mean `fk`?"),
        ([""], "no command ``"),
        (["-5", "fk"], "no command `-5`"),
        (["--jsn", "ping"], "no option `--jsn`; did you mean `--json`?"),
        (["--jsn"], "no option `--jsn`; did you mean `--json`?"),
        (["ping", "--sock", "x"], "no option `--sock`; did you mean `--socket`?"),  # no abbreviations
        (["fk", "--lnk=tool0", "0"], "no option `--lnk`; did you mean `--link`?"),
        (["fk", "-x"], "no option `-x`"),
        (["ping", "pong"], "`pong` is one word too many (`fkctl ping --help` tells more)"),
        (["verify", "a.zip", "b.zip"], "`b.zip` is one word too many"),
        (["verify"], "the following arguments are required: ZIP"),
        (["pack"], "the following arguments are required: SRC"),
        (["call"], "the following arguments are required: method"),
        (["show"], "show needs a file"),
        (["--socket"], "argument --socket: expected one argument"),
        (["fk", "--link"], "argument --link: expected one argument"),
        (["fk", "--format", "mtrix", "0"], "argument --format: invalid choice: 'mtrix'"),
        (["ping", "--json=yes"], "argument --json: ignored explicit argument 'yes'"),
        (["pack", "x", "--length-unit", "inch"], "argument --length-unit: invalid choice: 'inch'"),
        # what an unset shell variable leaves behind must not fall back to a default
        (["--socket", "", "ping"], "argument --socket: expected a path, got an empty word"),
        (["--model=", "ping"], "argument --model: expected a path, got an empty word"),
        (["pack", ""], "argument SRC: expected a path, got an empty word"),
        (["pack", "x", "-o", ""], "argument -o/--output: expected a path, got an empty word"),
        (["check", ""], "argument FILE: expected a path, got an empty word"),
    ],
)  # fmt: skip
def test_words_that_are_not_understood(fkctl, words, says):
    ran = fkctl(*words)
    assert ran.status == 2
    assert says in ran.err


@pytest.mark.parametrize("given", ["0", "-1", "-.5", "nan", "inf", "1e400", "1e5", "soon", "", "5s"])
def test_a_timeout_is_a_positive_number_of_seconds(fkctl, given):
    ran = fkctl("ping", "--timeout", given)
    assert ran.status == 2
    assert f"expected seconds, above 0 and at most 86400, got `{given}`" in ran.err


def test_options_stand_anywhere(fkctl, crane):
    """Before the command, after it, and between the values."""
    groups = [["--model", crane], ["--json"], ["--deg"], ["--link=hook"]]
    expected = fkctl("fk", "0.5", "-90", *itertools.chain(*groups))
    assert expected.status == 0
    for order in itertools.permutations(groups):
        for before, between in ((0, 1), (1, 3), (2, 2), (4, 4)):
            a, b, c = order[:before], order[before:between], order[between:]
            words = [*itertools.chain(*a), "fk", "0.5", *itertools.chain(*b), "-90", *itertools.chain(*c)]
            assert fkctl(*words) == expected, words


def test_two_dashes_end_the_options(fkctl, crane):
    assert fkctl("--model", crane, "fk", "--", "-1", "-2") == fkctl("--model", crane, "fk", "-1", "-2")


# -- numbers -----------------------------------------------------------------------------------------------------------


def parse_fk(*words: str):
    parser = Parser(prog="fkctl fk", parents=[common_parser()])
    poses.add_fk(parser)
    return parser.parse(list(words))


spellings = st.sampled_from(["{!r}", "{:.17e}", "{:+.17g}", "{:.3f}", "{:E}", "{:g}"])


@given(x=st.floats(allow_nan=False, allow_infinity=False), spelling=spellings)
def test_every_finite_number_is_a_value_in_every_spelling(x, spelling):
    word = spelling.format(x)
    options = parse_fk("--deg", word, "--link", "a", f"j={word}", word)
    assert options.q == [word, f"j={word}", word]
    assert poses.number(word) == float(word)


@pytest.mark.parametrize("word", ["-1", "-0", "-0.1", "-.5", "-1e-3", "-1.e+3", "-.5E2", "-00.5", "+1", "1.", ".5"])
def test_negative_numbers_need_no_quoting(word):
    assert poses.configuration(parse_fk(word).q) == [float(word)]
    assert poses.configuration(parse_fk(f"name={word}").q) == {"name": float(word)}
    assert poses.configuration(parse_fk(f"name={word},{word}").q) == {"name": [float(word)] * 2}


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("-inf", "`-inf` is not a finite number"),
        ("nan", "`nan` is not a finite number"),
        ("-1e400", "`-1e400` is not a finite number"),
        ("1_0", "`1_0` is not a number"),
        ("0x10", "`0x10` is not a number"),
        ("\u0661", "`\u0661` is not a number"),
        ("-1rad", "`-1rad` is not a number"),
        ("", "`` is not a number"),
        ("1,5", "`1,5` is not a number; blanks part the values, without commas or brackets"),
        ("[0", "`[0` is not a number; blanks"),
        ("run=", "joint `run`: `` is not a number"),
        ("run=1=2", "joint `run`: `1=2` is not a number"),
        ("run=-nan", "joint `run`: `-nan` is not a finite number"),
    ],
)
def test_what_is_no_finite_decimal_number_is_named(fkctl, crane, word, says):
    ran = fkctl("--model", crane, "fk", word)
    assert ran.status == 2
    assert says in ran.err


# -- anything at all ---------------------------------------------------------------------------------------------------

WRITING = ("demo", "pack", "expand", "export-urdf", "from-dh")  # a made-up -o is not a thing to try

words = st.one_of(
    st.sampled_from([
        *(c for c in COMMANDS if c not in WRITING), "--model", "--json", "--socket", "--timeout", "--deg", "--link", "--base",
        "--format", "pose", "--matrix", "-h", "--", "-", "--=", "=", "1", "-1", "-1e-3", "a=1", "a=-1", "all", "[]", "{}", "[[", "none",
    ]),
    st.text(st.characters(exclude_characters="/"), max_size=6),
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(argv=st.lists(words, max_size=6), command=st.sampled_from(["", *COMMANDS]))
def test_no_words_bring_it_down(robots, argv, command):
    """Whatever is typed: an exit status of ours, and at most one line on stderr."""
    start = [command] if command not in ("", *WRITING) else []
    # As the interpreter opens them: stdout strict, stderr not.
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace"))
    given_words = [str(robots / "ctl_crane.urdf") if w == "pose" else w for w in start + argv]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(given_words)
        err.flush()
    assert status in (0, 1, 2, 3)
    said = err.buffer.getvalue().decode()
    assert said.count("\n") <= 1
    assert "Traceback" not in said


# -- as a process ------------------------------------------------------------------------------------------------------


def test_exit_statuses_of_a_real_process(spawn, crane, robots):
    assert spawn("--model", crane, "ping", "--json") == (0, '"pong"\n', "")
    assert spawn("--model", crane, "fk", "0").status == 1
    assert spawn("check", robots / "ctl_broken.urdf").status == 1
    assert spawn("fk", "--bogus").status == 2
    assert spawn("ping").status == 3


def run(shell: str, *words: object, **environ: str) -> subprocess.CompletedProcess[str]:
    """`fkctl WORDS` within a line of shell that calls it by "$@"."""
    command = ["sh", "-c", shell, "sh", sys.executable, "-m", "fkd.ctl", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, env={**os.environ, **environ})


def test_a_reader_that_goes_away_is_no_news(tmp_path):
    names = [f"l{i}" for i in range(5000)]  # more than any pipe holds, so that the writing itself fails
    joints = [
        f'<joint name="j{i}" type="fixed"><parent link="l0"/><child link="{n}"/></joint>' for i, n in enumerate(names[1:])
    ]
    star = tmp_path / "star.urdf"
    star.write_text('<robot name="star">' + "".join(f'<link name="{n}"/>' for n in names) + "".join(joints) + "</robot>")
    done = run('"$@" | head -n 1', "show", star)
    assert done.stdout.startswith("star: 5000 links")
    assert done.stderr == ""


def test_a_reader_that_was_never_there(crane):
    """The failure comes at the last flush, where Python by itself would complain."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "fkd.ctl", "--model", crane, "model"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=30)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_an_error(crane):
    done = run('"$@" > /dev/full', "--model", crane, "model")
    assert (done.returncode, done.stderr) == (1, "fkctl: the output: No space left on device\n")


def test_closed_streams(crane):
    assert run('"$@" >&-', "--model", crane, "model").returncode == 0
    done = run('"$@" 2>&-', "--model", crane, "fk", "x")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_terminal_without_unicode_shows_what_it_can(crane):
    done = run('"$@"', "show", crane, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "carriage" in done.stdout


def test_ctrl_c_ends_without_words(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(live, "tell", interrupted)
    assert main(["ping"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_short_command_imports_nothing_heavy(shared_daemon):
    """What a shell script pays for each pose: no numpy, no event loop, no codecs of the daemon's."""
    code = (
        "import sys; from fkd.ctl.main import main; status = main(sys.argv[1:]);"
        "heavy = {'numpy', 'asyncio', 'msgspec', 'uvloop', 'fkd.robot', 'fkd.load', 'fkd.dispatch', 'tempfile'} & set(sys.modules);"
        "sys.exit(status or heavy or None)"
    )
    for words in (["fk", *["-0.1"] * 6], ["decompose", *["0.1"] * 6], ["status"], ["call", "ping"]):
        command = [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"]
        done = subprocess.run([*command, "--socket", shared_daemon.path, *words], capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, ""), words
