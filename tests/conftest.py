"""What several test files need: a warm sandbox, the toy course, a judge that obeys."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

import grader
from grader.report import CaseResult, Report
from tests.support import toy
from tritonlab.cli import app
from tritonlab.course import course
from tritonlab.course.course import Course, Roots

TESTS = Path(__file__).parent
COURSE_FILE = b"\npytestmark = pytest.mark.course\n"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--course", action="store_true",
                     help="also run the course tier: every module, mutant and right solution")
    parser.addoption("--no-cache", action="store_true",
                     help="compile and prove everything anew, whatever earlier runs have kept")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--no-cache"):
        os.environ["TRITONLAB_CACHE"] = "off"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The default tier does not import files that belong to the course tier as a whole."""
    if _with_course_tier(config) or collection_path.suffix != ".py":
        return None
    return COURSE_FILE in collection_path.read_bytes() or None


def _with_course_tier(config: pytest.Config) -> bool:
    """It runs if asked for, or if paths in tests/ are named."""
    named = any(Path(argument.partition("::")[0]).resolve() != TESTS for argument in config.args)
    return named or bool(config.getoption("--course"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests by tier."""
    for item in items:
        if not item.get_closest_marker("course"):
            grades = {"sandbox", "warm"} & set(getattr(item, "fixturenames", ()))
            item.add_marker("grading" if grades else "unit")
    if not _with_course_tier(config):
        course_tier = [item for item in items if item.get_closest_marker("course")]
        config.hook.pytest_deselected(items=course_tier)
        items[:] = [item for item in items if not item.get_closest_marker("course")]


def pytest_collection_finish() -> None:
    """Exempts the objects of imports and collection from garbage collection.

    A full collection of them takes up to 0.8 s of CPU, which counts against a survey's limit.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def sandbox() -> Iterator[object]:
    """One warm sandbox for all tests that grade for real."""
    from grader import Sandbox

    with Sandbox() as box, pytest.MonkeyPatch.context() as patch:
        for patience in ("case.SHRINK_S", "host_calls.PATIENCE_S", "context.GRADE_S"):
            patch.setattr(f"grader.judge.{patience}", math.inf)  # however busy the machine is
        yield box


@pytest.fixture
def warm(sandbox: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this process starts a sandbox for gets the session's one, which stays open."""
    monkeypatch.setitem(vars(grader), "Sandbox", lambda: contextlib.nullcontext(sandbox))


@pytest.fixture
def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles everything anew."""
    monkeypatch.setenv("TRITONLAB_CACHE", "off")


@pytest.fixture
def course_root(tmp_path: Path) -> Path:
    return toy.write_course(tmp_path / "course")


@pytest.fixture
def toy_course(course_root: Path) -> Course:
    return course.load(Roots(course_root / "tracks", course_root / "solutions",
                             course_root / "suites"))


@pytest.fixture
def home(tmp_path: Path, course_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, with the toy course to learn from."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TRITONLAB_COURSE", str(course_root))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # as on a machine without a GPU
    for name in ("TRITONLAB_WORKSPACE", "TRITONLAB_PLAIN", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def small_disk() -> Callable[..., AbstractContextManager[Path]]:
    """Makes a file system of a few KiB: ``with small_disk("64k") as folder``; only root can."""

    @contextlib.contextmanager
    def mount(size: str = "64k") -> Iterator[Path]:
        if os.geteuid() != 0:
            pytest.skip("mounting a small disk needs root")
        with tempfile.TemporaryDirectory() as place:
            command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place]
            mounted = subprocess.run(command, capture_output=True, text=True)
            if mounted.returncode:
                pytest.skip(f"a small disk cannot be mounted: {mounted.stderr.strip()}")
            try:
                yield Path(place)
            finally:
                subprocess.run(["umount", place], check=True)

    return mount


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Type a command: ``run("start", "softmax")``."""

    def type_command(*words: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["tritonlab", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app.main()
        out, err = capsys.readouterr()
        return Ran(int(ended.value.code or 0), out, err)

    return type_command


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make the grader answer with given results: ``judge(toy.PASSING)``; an exception is raised."""

    def says(results: tuple[CaseResult, ...] | BaseException, **more: object) -> None:
        def grade(kernel, suite, *, public_only=False, only=None, seed=None, target=None,
                  gpu="never", effort="whole", first=(), prepared=None, passed=None, on_event=None,
                  sandbox=None, cancelled=None, steps=None) -> Report:
            if isinstance(results, BaseException):
                raise results
            for result in results:
                if on_event:
                    on_event(result.name)
                    on_event(result)
            return toy.report(results, kernel, suite.sha256, public_only=public_only,
                              only=only or "", repeated=seed is not None, **more)

        monkeypatch.setitem(vars(grader), "grade", grade)  # setattr would load the real one
        monkeypatch.setitem(vars(grader), "Sandbox", contextlib.nullcontext)

    monkeypatch.setenv("TRITONLAB_CACHE", "off")  # of two answers about one file, each is shown
    return says
