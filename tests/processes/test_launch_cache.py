"""Compiled code is kept between grades; no verdict changes by it, whoever writes to the cache."""

from __future__ import annotations

import json
import shutil
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

import grader
from grader import Verdict
from grader.engine.compiler.targets import find
from grader.processes import cache
from grader.processes.launch_cache import LaunchCache
from grader.processes.pool import Processes
from grader.recording.model import Argument, Launch, View
from tests.judge.test_grade import KERNEL, SUITE
from tests.support.tiers import by_default

RIGHT = replace(SUITE, cases=[case for case in SUITE.cases if case.name != "every other element"])


@pytest.fixture
def entries(tmp_path, monkeypatch) -> Path:
    """The folder of the compiler's answers, empty."""
    monkeypatch.setenv("TRITONLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "compiled"


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory, sandbox) -> tuple[Path, grader.Report]:
    """The cache after a grade, and its report."""
    folder = tmp_path_factory.mktemp("once")
    (folder / "kernel.py").write_text(KERNEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITONLAB_CACHE", str(folder / "cache"))
        report = grader.grade(folder / "kernel.py", RIGHT, sandbox=sandbox, seed="5eed")
    assert report.verdict is Verdict.PASSED
    return folder / "cache" / "compiled", report


@pytest.fixture
def filled(entries, graded_once) -> Path:
    """The same folder as that grade left it."""
    shutil.copytree(graded_once[0], entries)
    return entries


@pytest.fixture
def before(graded_once) -> list[object]:
    return shown(graded_once[1])


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """The requests whose answers are kept."""
    asked: list[str] = []
    ask = Processes.ask

    def noted(self, role, request, *args, **more):
        if request["op"] in ("compile", "disassemble", "survey", "time"):
            asked.append(request["op"])
        return ask(self, role, request, *args, **more)

    monkeypatch.setattr(Processes, "ask", noted)
    return asked


@pytest.fixture
def grade(tmp_path, sandbox):
    def graded(text: str = KERNEL, **options) -> grader.Report:
        path = tmp_path / "kernel.py"
        path.write_text(text)
        return grader.grade(path, RIGHT, sandbox=sandbox, seed="5eed", **options)

    return graded


def launch(n: int) -> Launch:
    pointer = Argument("tensor", View(0, "float32", (64,), (1,), 0))
    return Launch("double_kernel", (1, 1, 1), {
        "x_ptr": pointer, "out_ptr": pointer, "n": Argument("int", n),
        "BLOCK": Argument("int", 64)})


def shown(report: grader.Report) -> list[object]:
    return [(one.name, one.verdict, one.findings, one.facts) for one in report.results]


def test_a_grade_fills_the_cache_and_the_next_compiles_nothing(filled, before, asked, grade):
    report = grade()

    assert any(filled.iterdir())
    assert asked == []
    assert shown(report) == before


@pytest.mark.parametrize(("old", "new"), [
    ("    tl.store(", "    # stores\n\n    tl.store("),
    ("    out = ", "    size = x.numel()\n    assert size >= 0\n    out = "),
], ids=["comment", "host code"])
def test_comments_and_host_code_compile_nothing(filled, asked, grade, old, new):
    assert old in KERNEL

    report = grade(KERNEL.replace(old, new))

    assert (report.verdict, asked) == (Verdict.PASSED, [])


def test_another_kernel_is_compiled(filled, asked, grade):
    report = grade(KERNEL.replace("x * 2", "2 * x"))

    assert report.verdict is Verdict.PASSED
    assert {*asked} == {"compile", "disassemble", "survey", "time"}


@pytest.mark.parametrize(("n", "target", "answer"), [
    (32, "h100", {}), (17, "h100", None), (1, "h100", None), (16, "a100", None)],
    ids=["another multiple of 16", "no multiple", "one", "another GPU"])
def test_an_answer_is_of_a_gpu_and_of_what_the_compiler_knows_of_integers(
        entries, n, target, answer):
    kept = LaunchCache(KERNEL, disk=lambda: True)
    kept.write(launch(16), find("h100"), {})

    assert kept.read(launch(16), find("h100"), whole=False) == {}
    assert kept.read(launch(n), find(target), whole=False) == answer


def test_where_learners_reach_the_disk_nothing_is_written_there_or_read(entries):
    LaunchCache(KERNEL, disk=lambda: False).write(launch(16), find("h100"), {})
    assert not list(entries.glob("*"))

    LaunchCache(KERNEL, disk=lambda: True).write(launch(16), find("h100"), {})
    beside = LaunchCache(KERNEL, disk=lambda: False)

    assert list(entries.glob("*"))
    assert beside.read(launch(16), find("h100"), whole=False) is None


def test_all_compilations_begin_before_a_launch_is_timed(entries, asked, grade):
    grade()

    assert asked.count("compile") == 5  # no launch twice
    assert asked[:2] == ["compile", "disassemble"]
    assert asked[-1] == "time"


def test_a_refusal_is_not_kept(entries, asked, grade):
    wrong = KERNEL.replace("x * 2", "tl.reshape(x * 2, (3,))")

    first, second = grade(wrong), grade(wrong)

    assert first.verdict is second.verdict is Verdict.FAILED
    assert shown(first) == shown(second)
    assert not any("finding" in path.read_text() for path in entries.glob("*"))


def test_without_landlock_nothing_is_kept(entries, tmp_path, asked):
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    with grader.Sandbox(without=("landlock",)) as box:
        assert grader.grade(path, RIGHT, sandbox=box).verdict is Verdict.PASSED

    assert not entries.exists()
    assert {*asked} == {"compile", "disassemble", "survey", "time"}


# ---------------------------------------------------------------------------------------------
# Attacks

def rewritten(entries: Path, change) -> None:
    """Forges every entry, with a digest that fits."""
    for path in entries.iterdir():
        answer = json.loads(path.read_text().partition("\n")[2])
        text = json.dumps(change(answer))
        path.write_text(f"{cache._digest(path.name, text)}\n{text}")


@pytest.mark.parametrize("damage", by_default(3, [
    lambda path: path.write_bytes(path.read_bytes()[:-9]),
    lambda path: path.write_bytes(b"\xff" * 100),
    lambda path: path.write_text(""),
    lambda path: (path.unlink(), path.mkdir()),
    lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    lambda path: (path.unlink(), path.symlink_to(path.name)),
]), ids=["cut", "no text", "empty", "folder", "endless", "loop"])
def test_damaged_entries_change_no_verdict(filled, before, grade, damage):
    for path in list(filled.iterdir()):
        damage(path)

    assert shown(grade()) == before


@pytest.mark.parametrize("change", by_default(3, [
    lambda answer: {"binary": {}}, lambda answer: {"binary": None}, lambda answer: [],
    lambda answer: {"binary": {**answer.get("binary", {}), "registers": -1}}
    if isinstance(answer, dict) else [{**one, "programs": -1} for one in answer],
    lambda answer: {"finding": {"code": "L05"}}, lambda answer: {"launches": "all"},
]), ids=["no fields", "null", "list", "negative", "refusal", "other fields"])
def test_what_is_not_an_answer_of_the_compiler_is_not_used(filled, before, grade, change):
    rewritten(filled, change)

    assert shown(grade()) == before


def test_entries_exchanged_among_each_other_are_not_used(filled, before, grade):
    paths = sorted(filled.iterdir())
    texts = [path.read_text() for path in paths]
    for path, text in zip(paths, [*texts[1:], texts[0]], strict=True):
        path.write_text(text)

    assert shown(grade()) == before


def test_a_learners_file_cannot_write_to_the_cache(filled, grade):
    kept = {path.name: path.read_bytes() for path in filled.iterdir()}
    attack = textwrap.dedent(f"""
        import pathlib
        for place in ({str(filled)!r}, {str(filled.parent)!r}):
            for name in ("forged", *{sorted(kept)!r}):
                try:
                    (pathlib.Path(place) / name).write_text("forged")
                except OSError:
                    pass
        """)

    report = grade(attack + KERNEL)

    assert report.verdict is Verdict.PASSED
    after = {path.name: path.read_bytes() for path in filled.iterdir()}
    assert {name: after[name] for name in kept} == kept
    assert "forged" not in after


@pytest.mark.parametrize(("old", "new"), [
    ("def double(x):", "@triton.jit\ndef double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n"
                       "    tl.reshape(tl.arange(0, BLOCK), (3,))\n\n\ndef double(x):"),
    ("import triton.language as tl", "import triton.language.extra as tl"),
    ("@triton.jit", "tl.load = None\n\n\n@triton.jit"),
    ("def double(x):", "def double(x):\n    global tl"),
], ids=["defined again", "another module", "an attribute set", "a global of host code"])
def test_a_file_that_only_looks_like_a_kept_one_is_graded_as_without_the_cache(
        filled, grade, monkeypatch, old, new):
    assert old in KERNEL
    with_cache = grade(KERNEL.replace(old, new))
    monkeypatch.setenv("TRITONLAB_CACHE", "off")

    assert shown(with_cache) == shown(grade(KERNEL.replace(old, new)))
