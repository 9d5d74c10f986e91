"""Every attempt to fool the grader fails, with a finding that says what was seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import grader
import tests.fidelity.cheats as attempts
from grader import Verdict
from grader.sandbox import Sandbox
from tests.fidelity.cheats import CLASSES, Cheat, cheats
from tests.fidelity.cheats.naive import believed

pytestmark = pytest.mark.course

ALL = cheats()
DECIDED = [cheat for cheat in ALL if cheat.naive is not None]


def name_of(cheat: Cheat) -> str:
    return f"{cheat.module}-{cheat.name}"


@pytest.fixture(scope="module")
def suites() -> Mapping[str, grader.Suite]:
    return {module: attempts.suite_of(module) for module in attempts.SUITES}


@pytest.fixture(scope="module")
def confined(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> bool:
    return attempts.is_confined(sandbox, tmp_path_factory.mktemp("probe"))


@pytest.fixture(scope="module")
def naive() -> Mapping[str, bool]:
    return believed(ALL)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    attempts.plant(tmp_path)
    return tmp_path


def test_there_are_cheats_of_all_classes_each_with_its_file():
    assert len(ALL) >= 60
    assert {cheat.group[0] for cheat in ALL} == set(CLASSES)
    assert len({cheat.group for cheat in ALL}) >= 35
    files = sorted(path for module in attempts.SUITES
                   for path in (attempts.FOLDER / module).glob("[!_]*.py"))
    assert files == sorted(cheat.path for cheat in ALL)
    for cheat in ALL:
        assert re.fullmatch(r"[ABCD]\d+", cheat.group)
        assert cheat.trick.endswith(".")


@pytest.mark.parametrize("cheat", ALL, ids=name_of)
def test_a_cheat_fails_and_the_finding_says_what_was_seen(
    cheat: Cheat, suites: Mapping[str, grader.Suite], sandbox: Sandbox, home: Path, confined: bool
) -> None:
    report = grader.grade(cheat.put(home), suites[cheat.module], sandbox=sandbox,
                          effort=cheat.effort)

    assert (report.verdict, report.exit_code) == (Verdict.FAILED, 1)
    assert not [r.reason for r in report.results if r.verdict is Verdict.ERROR]
    assert cheat.caught(report), "\n".join(
        f"{result.name}: {f.code} {f.seen}" for result in report.results for f in result.findings)
    if confined or not cheat.isolation:
        assert attempts.touched(home) == []


@pytest.mark.parametrize("cheat", DECIDED, ids=name_of)
def test_what_is_called_a_cheat_fools_a_grader_in_the_same_process(
    cheat: Cheat, naive: Mapping[str, bool]
) -> None:
    assert naive[f"{cheat.module}/{cheat.name}"] is cheat.naive


def test_what_memory_holds_does_not_decide_whether_a_cheat_fools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    empty = [cheat for cheat in ALL
             if cheat.name in ("takes_the_expected_tensor", "climbs_the_frames")]
    monkeypatch.setenv("MALLOC_PERTURB_", "255")  # zeros, as in the memory of a fresh process

    assert list(believed(empty).values()) == [False, False]


def test_most_cheats_fool_a_grader_in_the_same_process():
    assert sum(cheat.naive is True for cheat in ALL) >= 60


def test_a_changed_canary_is_seen(home: Path) -> None:
    (home / "certificate.json").write_text("forged")
    (home / "new.py").write_text("")
    (home / "diary.txt").unlink()

    assert attempts.touched(home) == ["certificate.json", "diary.txt", "new.py"]
