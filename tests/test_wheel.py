"""The wheel holds every module, and an installed copy alone can list, start and grade them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.course

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_every_file_of_every_module(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = [p.parent.relative_to(ROOT / "tracks") for p in ROOT.glob("tracks/*/*/module.toml")]

    assert modules
    for module in modules:
        further = tomllib.loads((ROOT / "tracks" / module / "module.toml").read_text())
        for file in ("kernel.py", *further.get("files", ())):
            assert f"tritonlab/tracks/{module}/{file}" in names
            assert f"tritonlab/solutions/{module}/{file}" in names
        for file in ("module.toml", "README.md", "lesson.py"):
            assert f"tritonlab/tracks/{module}/{file}" in names
        suite = ROOT / "grader" / "suites" / module
        for file in suite.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert f"grader/suites/{module}/{file.relative_to(suite)}" in names
    for template in (ROOT / "tritonlab").glob("*/templates/**/*.*"):
        assert str(template.relative_to(ROOT)) in names
    assert not [name for name in names if name.startswith("tests")]


def test_an_installed_wheel_lists_starts_and_grades(wheel, tmp_path):
    # Dependencies come from the environment that runs the tests; tritonlab only from the wheel.
    venv.create(tmp_path / "venv", with_pip=False)
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    outer = Path(__import__("torch").__file__).parent.parent
    zipfile.ZipFile(wheel).extractall(site)
    for entry in outer.iterdir():
        if "tritonlab" not in entry.name and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    python, work = tmp_path / "venv" / "bin" / "python", tmp_path / "work"
    work.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def tritonlab(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [python, "-m", "tritonlab", *arguments]
        return subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True)

    where = subprocess.run([python, "-c", "import grader; print(grader.__file__)"], cwd=work,
                           env=environment, capture_output=True, text=True)
    assert str(site) in where.stdout, where.stderr
    assert "track1/softmax" in tritonlab("list").stdout
    for slug, folder in (("vector-add", "01-vector-add"), ("softmax", "03-softmax")):
        assert tritonlab("start", f"track1/{slug}").returncode == 0
        started = work / "tritonlab-workspace" / "track1" / slug / "kernel.py"
        started.write_text((site / "tritonlab/solutions/missing-elements" / folder / "kernel.py"
                            ).read_text())
        graded = tritonlab("grade", f"track1/{slug}")
        assert graded.returncode == 0, graded.stdout + graded.stderr
