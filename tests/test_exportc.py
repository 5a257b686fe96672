"""Exported C against the Python kernels, compiled as a controller's build would compile it."""

from __future__ import annotations

import ctypes
import itertools
import math
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fkd.errors import InvalidParams, ModelError
from fkd.exportc import export_c
from fkd.kernel.jacobian import pose_and_jacobian
from fkd.kernel.pose import matrix
from fkd.robot import Robot, load

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", "-Wdouble-promotion", "-Wmissing-prototypes")
ROBOTS = ("emit_joints", "emit_names", "emit_static", "kin_mixed", "wire_arm", "wire_slides")
REALS = {"double": (ctypes.c_double, 1e-12), "float": (ctypes.c_float, 2e-5)}
RNG = np.random.default_rng(30)

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to compile C with")
Exporter = Callable[..., tuple[str, ctypes.CDLL]]


@pytest.fixture(params=ROBOTS)
def robot(request: pytest.FixtureRequest, robots: Path) -> Robot:
    return load(robots / f"{request.param}.urdf")


@pytest.fixture
def arm(robots: Path) -> Robot:
    return load(robots / "wire_arm.urdf")


def written(folder: Path, exported: tuple[str, str, str, str]) -> Path:
    """Header and source as files -> the source."""
    header_name, header, source_name, source = exported
    (folder / header_name).write_text(header, encoding="ascii")
    (folder / source_name).write_text(source, encoding="ascii")
    return folder / source_name


def compile_c(*arguments: str | Path, compiler: str = "gcc") -> subprocess.CompletedProcess[str]:
    return subprocess.run([compiler, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def library(tmp_path: Path) -> Exporter:
    """Exports and compiles -> the prefix of its names, and the library."""
    number = itertools.count()

    def made(robot: Robot, *flags: str, **options: Any) -> tuple[str, ctypes.CDLL]:
        folder = tmp_path / str(next(number))
        folder.mkdir()
        source = written(folder, export_c(robot, **options))
        done = compile_c("-std=c99", *STRICT, *flags, "-shared", "-fPIC", "-o", folder / "lib.so", source, "-lm")
        assert done.returncode == 0, done.stderr
        return source.name.removesuffix("_fk.c"), ctypes.CDLL(str(folder / "lib.so"))

    return made


def call(function: Any, q: Sequence[float], sizes: Sequence[int], real: type = ctypes.c_double) -> list[list[float]]:
    outs = [(real * size)() for size in sizes]
    function((real * max(len(q), 1))(*q), *outs)
    return [list(out) for out in outs]


def configurations(robot: Robot, n: int) -> list[list[float]]:
    return RNG.uniform(-3.0, 3.0, (n, robot.dof)).tolist()


def endings(links: Sequence[str]) -> dict[str, str]:
    """Link -> what its functions are called after; the robots here have names that come out apart."""
    plain = {link: "_" + re.sub("[^a-z0-9]+", "_", link.lower()).strip("_") for link in links}
    assert len(set(plain.values())) == len(links)
    return plain


@needs_gcc
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", ["emit_joints", "kin_mixed", "wire_arm", "wire_slides"])
def test_poses_and_jacobians(library: Exporter, robots: Path, name: str, real: str) -> None:
    robot = load(robots / f"{name}.urdf")
    kind, close = REALS[real]
    links = robot.links[-4:]
    prefix, lib = library(robot, "-O1", links=links, real=real)
    places, base = robot.kernels.places, robot.kernels.places[robot.model.base]
    for q in configurations(robot, 10):
        expected = robot.kernels.reference(q, links)
        (together,) = call(getattr(lib, f"{prefix}_poses"), q, [16 * len(links)], kind)
        assert together == pytest.approx([x for T in expected.values() for x in T], abs=close)
        for link, ending in endings(links).items():
            (pose,) = call(getattr(lib, f"{prefix}_pose{ending}"), q, [16], kind)
            assert pose == pytest.approx(expected[link], abs=close)
            pose, jacobian = call(getattr(lib, f"{prefix}_jacobian{ending}"), q, [16, 6 * robot.dof], kind)
            frame, rows = pose_and_jacobian(robot.kernels.tree, q, places[link], base)
            assert pose == pytest.approx(matrix(frame), abs=close)  # type: ignore[arg-type]
            largest = max(1.0, *(abs(x) for row in rows for x in row))  # type: ignore[arg-type]
            assert jacobian == pytest.approx([x for row in rows for x in row], abs=10 * close * largest)


@needs_gcc
def test_the_tip_alone_by_default(library: Exporter, arm: Robot) -> None:
    prefix, lib = library(arm, "-O2")
    for q in configurations(arm, 20):
        assert call(getattr(lib, f"{prefix}_pose"), q, [16])[0] == pytest.approx(arm.pose(q), abs=1e-12)
        assert call(getattr(lib, f"{prefix}_jacobian"), q, [16, 6 * arm.dof])[0] == pytest.approx(arm.pose(q), abs=1e-12)


@needs_gcc
def test_nan_and_zero_quaternions_come_out_not_finite(library: Exporter, robots: Path) -> None:
    robot = load(robots / "emit_joints.urdf")
    prefix, lib = library(robot, "-O3", links=["camera"])
    pose = getattr(lib, f"{prefix}_pose_camera")
    good = [0.1] * robot.dof
    assert all(map(math.isfinite, call(pose, good, [16])[0]))
    fly = next(j.index for j in robot.model.independent if j.type == "floating")
    assert not all(map(math.isfinite, call(pose, [*good[: fly + 3], 0.0, 0.0, 0.0, 0.0], [16])[0]))
    for place in (0, 2, 4, fly + 6):
        bad = [math.nan if k == place else x for k, x in enumerate(good)]
        reads = place != robot.model.by_name["reach"].index  # the drone does not ride on the slide
        assert any(map(math.isnan, call(pose, bad, [16])[0])) == (reads and place != robot.model.by_name["roll"].index)


@needs_gcc
def test_tables(library: Exporter, robot: Robot) -> None:
    prefix, lib = library(robot, links=robot.links[:1])
    names = (ctypes.c_char_p * len(robot.links)).in_dll(lib, f"{prefix}_link_names")
    assert tuple(n.decode() for n in names) == robot.links
    if not robot.dof:
        assert not hasattr(lib, f"{prefix}_joint_names")
        return
    owners = (ctypes.c_char_p * robot.dof).in_dll(lib, f"{prefix}_joint_names")
    assert tuple(n.decode() for n in owners) == robot.model.q_names
    for j in robot.model.independent:
        for k in range(j.width):
            bounds = [(ctypes.c_double * robot.dof).in_dll(lib, f"{prefix}_{n}")[j.index + k] for n in ("lower", "upper")]
            given = (j.limits.lower, j.limits.upper) if j.limits else (None, None)
            assert bounds == [-math.inf if given[0] is None else given[0], math.inf if given[1] is None else given[1]]


@needs_gcc
@pytest.mark.parametrize("real", REALS)
def test_compiles_as_a_build_would(robot: Robot, tmp_path: Path, real: str) -> None:
    source = written(tmp_path, export_c(robot, robot.links[-2:], real=real, command="fkctl export-c -o \\\n*/ ??/"))
    for flags in (["-std=c99", "-O2"], ["-std=c99", "-ffreestanding"], ["-std=c17"]):
        done = compile_c(*flags, *STRICT, "-c", source, "-o", tmp_path / "x.o")
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ to compile C++ with")
def test_the_header_serves_cpp(arm: Robot, tmp_path: Path) -> None:
    source = written(tmp_path, export_c(arm, prefix="my arm"))
    main = tmp_path / "main.cpp"
    main.write_text(
        '#include "my_arm_fk.h"\n'
        "int main() { double q[MY_ARM_DOF] = {}, T[16]; my_arm_pose(q, T); return T[15] == 1.0 ? 0 : 1; }\n"
    )
    assert compile_c("-std=c99", *STRICT, "-c", source, "-o", tmp_path / "fk.o").returncode == 0
    done = compile_c("-Wall", "-Wextra", "-Werror", main, tmp_path / "fk.o", "-o", tmp_path / "main", "-lm", compiler="g++")
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


@needs_gcc
def test_sanitizers_find_nothing(robots: Path, tmp_path: Path) -> None:
    """Buffers of exactly the documented sizes, values that are good, large and not finite."""
    sanitize = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n")
    probe = compile_c(*sanitize, tmp_path / "empty.c", "-o", tmp_path / "empty")
    if probe.returncode or subprocess.run([tmp_path / "empty"], check=False, capture_output=True).returncode:
        pytest.skip("the sanitizers do not link or run here")
    robot = load(robots / "emit_joints.urdf")
    links = ["thumb", "camera"]
    source = written(tmp_path, export_c(robot, links, prefix="r"))
    calls = "".join(f"r_pose{e}(q, T); r_jacobian{e}(q, T, J);" for e in endings(links).values())
    (tmp_path / "main.c").write_text(
        '#include <math.h>\n#include <stdlib.h>\n#include "r_fk.h"\n'
        "int main(void) {\n    const double values[] = {0.0, 1.0, -2.5, 1e300, INFINITY, NAN};\n"
        "    double *q = malloc(R_DOF * sizeof *q), *T = malloc(16 * sizeof *T);\n"
        "    double *J = malloc(6 * R_DOF * sizeof *J), *all = malloc(16 * 2 * sizeof *all);\n"
        "    for (int v = 0; v < 6; v++) {\n        for (int i = 0; i < R_DOF; i++) q[i] = values[v];\n"
        f"        {calls} r_poses(q, all);\n    }}\n    free(q); free(T); free(J); free(all);\n    return 0;\n}}\n"
    )
    done = compile_c("-std=c99", *sanitize, tmp_path / "main.c", source, "-o", tmp_path / "main", "-lm")
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


# -- text ----------------------------------------------------------------------------------------------------------


def test_the_comment_says_what_it_is(arm: Robot) -> None:
    header_name, header, source_name, source = export_c(arm, command="fkctl export-c arm.zip")
    assert (header_name, source_name) == ("wire_arm_fk.h", "wire_arm_fk.c")
    for text in (header, source):
        head = text.partition("*/")[0]
        for fact in (arm.name, arm.digest, arm.model.base, arm.model.tip, "fkctl export-c arm.zip", "metre", *arm.joints):
            assert str(fact) in head
    assert f'_DIGEST "{arm.digest}"' in header
    assert "malloc" not in source
    assert re.findall("#include.*", source) == ["#include <math.h>", '#include "wire_arm_fk.h"']


def test_names_that_come_out_alike_are_told_apart(robots: Path) -> None:
    robot = load(robots / "emit_names.urdf")
    _, header, _, _ = export_c(robot, robot.links)
    assert re.findall(r"void \w+_pose(_\w+)\(", header) == ["_int", "_a_b", "_a_b_2", "_a_b_3", "_gelenk_a"]


def test_links_are_taken_once_and_in_the_order_given(arm: Robot) -> None:
    first, last = arm.links[0], arm.links[-1]
    _, header, _, _ = export_c(arm, [last, first, last])
    assert re.findall(r"_pose_(\w+)\(", header) == [last, first]


def test_what_cannot_be_exported_is_refused(robots: Path, arm: Robot, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no single tip"):
        export_c(load(robots / "emit_joints.urdf"))
    with pytest.raises(ModelError, match="did you mean"):
        export_c(arm, [arm.links[-1] + "x"])
    with pytest.raises(InvalidParams, match="double or float"):
        export_c(arm, real="long double")
    far = tmp_path / "far.urdf"
    far.write_text(
        '<robot name="far"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>'
        '<child link="b"/><origin xyz="1e39 0 0"/><axis xyz="0 0 1"/></joint></robot>'
    )
    export_c(load(far))
    with pytest.raises(InvalidParams, match="range of a float"):
        export_c(load(far), real="float")
