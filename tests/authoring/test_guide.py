"""The author's guide, followed to the letter: a module made, written, checked and graded."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support import authored
from tritonlab.authoring import checks

pytestmark = pytest.mark.course

GUIDE = (Path(__file__).parents[2] / "docs" / "authoring.md").read_text()
BLOCKS = {name: block for name, _, block in re.findall(
    r"<!-- guide: (.+?) -->\n(`{3,})\w+\n(.*?)\2", GUIDE, re.DOTALL)}
COMMANDS = [shlex.split(line)[1:] for block in re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL)
            for line in block.splitlines()]


def test_the_guide_shows_what_a_module_needs():
    assert list(BLOCKS) == ["solutions/kernel.py", "suites/suite.py", "suites/mutants.toml",
                            "tracks/kernel.py, from the solution", "tracks/module.toml"]
    assert len([line for line in BLOCKS["suites/suite.py"].splitlines() if line]) < 30
    assert [command[0] for command in COMMANDS] == ["new", "check", "check", "start", "grade"]


@pytest.fixture
def elsewhere(home, monkeypatch):
    """A course of one's own, with the module before that the guide's one builds on."""
    root = home / "mine"
    authored.make(root, "track1/vector-add")
    monkeypatch.setenv("TRITONLAB_COURSE", str(root))
    return root


def test_a_module_made_by_the_guide_alone_is_checked_and_graded(run, elsewhere):
    new, first_check, check, start, grade = COMMANDS

    assert run(*new).code == 0
    made = authored.make(elsewhere, new[1])
    untouched = run(*first_check, "--plain", "--runs", "1")
    fails = [line for line in untouched.out.splitlines() if "FAIL " in line]
    assert fails == [f"{new[1]}: FAIL nothing left to write"]

    for name, text in BLOCKS.items():
        if name != "tracks/kernel.py, from the solution":
            made.file(name).write_text(text)
    exercise = BLOCKS["solutions/kernel.py"]
    lines = BLOCKS["tracks/kernel.py, from the solution"].splitlines(keepends=True)
    for old, put in zip(lines[::2], lines[1::2], strict=True):
        assert (old[0], put[0], exercise.count(old[1:])) == ("-", "+", 1)
        exercise = exercise.replace(old[1:], put[1:])
    made.file("tracks/kernel.py").write_text(exercise)
    authored.answer([made.file(name) for name in (
        "tracks/README.md", "tracks/lesson.py", "solutions/answers.md")])  # the prose

    checked = run(*check, "--json")
    data = json.loads(checked.out)
    started = run(*start)
    blanks = run(*grade)
    kernel = Path("tritonlab-workspace/track1/row-logsumexp/kernel.py")
    kernel.write_text(BLOCKS["solutions/kernel.py"])
    graded = run(*grade)

    faults = [fault for module in data["modules"]
              for what in (*module["checks"], *module["mutants"]) for fault in what["faults"]]
    assert (checked.code, faults) == (0, [])
    assert [(m["id"], m["kills"], m["runs"]) for m in data["modules"][0]["mutants"]] == [
        (name, 5, 5) for name in "abcd"]
    assert (started.code, blanks.code, graded.code) == (0, 1, 0)
    assert "5 of 5 blanks are left." in " ".join(blanks.out.split())
    assert "Evidence efficient" in " ".join(graded.out.split())
    assert checks.PROMPT not in made.file("tracks/README.md").read_text()
