"""From folders and packages to a bundle that loads: nothing that the model needs is left out, nothing else gets in."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fkd.errors import BundleRefused
from fkd.load import examine
from fkd.load.collect import collect
from fkd.load.pack import write_bundle
from fkd.robot import Robot, load

MAIN = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="side" default="left"/>
<xacro:include filename="$(find common)/macros.xacro"/>
<xacro:property name="sizes" value="${xacro.load_yaml('$(find arm)/config/sizes.yaml')}"/>
<link name="base"/><xacro:segment name="$(arg side)" length="${sizes['length']}"/></robot>"""
MACROS = """<r xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="segment" params="name length">
<link name="${name}"/><joint name="j" type="continuous"><parent link="base"/><child link="${name}"/><origin xyz="${length} 0 0"/></joint>
</xacro:macro></r>"""


def package(folder: Path, name: str, **files: str) -> Path:
    home = folder / name
    (home / "urdf").mkdir(parents=True)
    (home / "config").mkdir()
    (home / "package.xml").write_text(f"<package><name>{name}</name></package>")
    for path, text in files.items():
        (home / path.replace("__", "/")).write_text(text)
    return home


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    arm = package(tmp_path / "src", "arm")
    (arm / "urdf/arm.urdf.xacro").write_text(MAIN)
    (arm / "config/sizes.yaml").write_text("length: 0.25\n")
    (arm / "urdf/unused.xacro").write_text("<robot/>")
    common = package(tmp_path / "src", "common")
    (common / "macros.xacro").write_text(MACROS)
    package(tmp_path / "src", "unrelated")
    return tmp_path / "src"


def bundled(members: dict[str, bytes], place: Path) -> Robot:
    file = place / "out.zip"
    file.write_bytes(write_bundle(members))
    return load(file)


def test_a_xacro_file_brings_what_it_includes_from_its_own_and_the_other_packages(workspace: Path, tmp_path: Path) -> None:
    members = collect(workspace / "arm/urdf/arm.urdf.xacro", xacro_args={"side": "right"})
    assert set(members) == {
        "arm/urdf/arm.urdf.xacro", "arm/config/sizes.yaml", "arm/package.xml", "common/macros.xacro", "common/package.xml", "bundle.toml",
    }  # fmt: skip
    robot = bundled(members, tmp_path)
    assert robot.links == ("base", "right")
    assert robot.poses([0.0], ["right"])["right"][3] == 0.25
    assert robot.model.trust == "hashed"


def test_the_same_from_the_packages_folder_and_from_afar(workspace: Path, tmp_path: Path) -> None:
    assert bundled(collect(workspace / "arm"), tmp_path).links == ("base", "left")
    (workspace / "common").rename(tmp_path / "elsewhere")
    with pytest.raises(BundleRefused, match="common"):
        collect(workspace / "arm/urdf/arm.urdf.xacro")
    for words in ([f"common={tmp_path / 'elsewhere'}"], [str(tmp_path / "elsewhere")], [str(tmp_path)]):
        assert bundled(collect(workspace / "arm/urdf/arm.urdf.xacro", package_paths=words), tmp_path).links == ("base", "left")


def test_a_package_path_that_is_not_there_is_refused_even_where_it_is_not_needed(tmp_path: Path) -> None:
    (tmp_path / "a.urdf").write_text('<robot name="r"><link name="a"/></robot>')
    with pytest.raises(BundleRefused, match="no such folder"):
        collect(tmp_path / "a.urdf", package_paths=[str(tmp_path / "nowhere")])


def test_links_out_of_a_folder_and_hidden_files_are_not_seen(tmp_path: Path) -> None:
    folder = tmp_path / "robot"
    folder.mkdir()
    (tmp_path / "secret.urdf").write_text('<robot name="r"><link name="a"/></robot>')
    (folder / "a.urdf").symlink_to(tmp_path / "secret.urdf")
    (folder / ".b.urdf").write_text('<robot name="r"><link name="a"/></robot>')
    with pytest.raises(BundleRefused) as e:
        collect(folder)
    assert e.value.reason == "bundle-no-model"


def test_an_error_in_an_expanded_joint_names_the_macro_and_the_call(workspace: Path) -> None:
    (workspace / "common/macros.xacro").write_text(MACROS.replace('<origin xyz="${length} 0 0"/>', '<origin xyz="${length} 0"/>'))
    with pytest.raises(BundleRefused) as e:
        bundled(collect(workspace / "arm/urdf/arm.urdf.xacro"), workspace)
    assert str(e.value).startswith("common/macros.xacro:2: ")
    assert "called from arm/urdf/arm.urdf.xacro:5" in str(e.value)


def test_a_table_in_a_bundle_and_by_itself(tmp_path: Path) -> None:
    text = "# convention: modified\n# length_unit: cm\n# angle_unit: deg\njoint,type,a,alpha,d,theta\nj1,revolute,0,90,5,0\nj2,prismatic,10,0,0,0\n"
    (tmp_path / "arm.csv").write_text(text)
    alone = load(tmp_path / "arm.csv")
    assert alone.model.trust == "unbundled"
    robot = bundled(collect(tmp_path / "arm.csv"), tmp_path)
    assert robot.joints == ("j1", "j2")
    # Rx(90) Rz(q1) Tz(0.05) then Tx(0.1) Tz(q2): at q1 = 0 both slides are along -y of the base
    assert robot.pose([0.0, 0.2]) == pytest.approx([1, 0, 0, 0.1, 0, 0, -1, -0.25, 0, 1, 0, 0, 0, 0, 0, 1], abs=1e-15)
    assert robot.pose([0.3, 0.1]) == alone.pose([0.3, 0.1])


def test_a_measured_origin_is_used_and_told(tmp_path: Path) -> None:
    folder = tmp_path / "unit7"
    folder.mkdir()
    (folder / "a.urdf").write_text(
        '<robot name="r"><link name="a"/><link name="b"/>\n<joint name="j" type="continuous"><parent link="a"/><child link="b"/><origin xyz="300 0 0"/></joint></robot>'
    )
    (folder / "bundle.toml").write_text('length_unit = "mm"\n[calibration.j]\nxyz = [0.3, 0.0005, 0]\nrpy = [0, 0, 0.01]\n')
    robot = bundled(collect(folder), tmp_path)
    assert robot.pose([0.0])[3::4] == [0.3, 0.0005, 0.0, 1.0]
    (found,) = examine(tmp_path / "out.zip")
    assert (found.code, found.severity) == ("settings-calibrated", "info")
    assert "0.5 mm" in found.message
    assert f"{math.degrees(0.01):.4g} deg" in found.message
    assert "a.urdf:2" in found.message


def test_what_would_change_the_robot_unseen_is_refused(workspace: Path, tmp_path: Path) -> None:
    """A bundle.toml beside a file that is packed alone, a second package of the same name, a slip in an argument's name."""
    with pytest.raises(BundleRefused, match="did you mean `side`"):
        bundled(collect(workspace / "arm/urdf/arm.urdf.xacro", xacro_args={"sied": "right"}), tmp_path)
    package(workspace.parent / "install", "common").joinpath("macros.xacro").write_text(MACROS.replace("base", "bace"))
    with pytest.raises(BundleRefused, match="twice"):
        collect(workspace / "arm/urdf/arm.urdf.xacro", package_paths=[str(workspace.parent)])
    (workspace.parent / "install" / "COLCON_IGNORE").touch()
    assert bundled(collect(workspace / "arm/urdf/arm.urdf.xacro", package_paths=[str(workspace.parent)]), tmp_path).links == ("base", "left")
    (workspace / "arm/urdf/bundle.toml").write_text('length_unit = "mm"')
    with pytest.raises(BundleRefused, match="passed over"):
        collect(workspace / "arm/urdf/arm.urdf.xacro")


def test_a_tables_unit_does_not_count_twice(tmp_path: Path) -> None:
    (tmp_path / "arm.csv").write_text("# convention: standard\n# length_unit: mm\n# angle_unit: rad\njoint,type,a,alpha,d,theta\nj,revolute,300,0,400,0\n")
    assert bundled(collect(tmp_path / "arm.csv", tip="tool0"), tmp_path).pose([0.0])[3::4] == [0.3, 0.0, 0.4, 1.0]
    with pytest.raises(BundleRefused, match="length_unit"):
        bundled(collect(tmp_path / "arm.csv", length_unit="mm"), tmp_path)
