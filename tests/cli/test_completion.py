"""Shell completion: what Tab offers in bash, zsh and fish, and what it costs."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import toy

pytestmark = pytest.mark.course

MOST_CPU_S = 0.6  # 0.28 s on a machine at rest; this catches torch, which takes more than one
NAMES = ["4 rows of 127 columns", "4 rows of 128 columns", "softmax: it's all -inf"]

Press = Callable[..., list[str]]


def complete(shell: str, *words: str) -> list[str]:
    """What a shell is given when Tab is pressed at the end of the last word."""
    asked = {"bash": {"COMP_WORDS": "\n".join(("tritonlab", *words)),
                      "COMP_CWORD": str(len(words))},
             "zsh": {"_TYPER_COMPLETE_ARGS": " ".join(("tritonlab", *words))},
             "fish": {"_TYPER_COMPLETE_ARGS": " ".join(("tritonlab", *words)),
                      "_TYPER_COMPLETE_FISH_ACTION": "get-args"}}
    ran = subprocess.run([sys.executable, "-m", "tritonlab"], text=True, capture_output=True,
                         env={**os.environ, "_TRITONLAB_COMPLETE": f"complete_{shell}",
                              **asked[shell]})
    assert ran.stderr == ""
    return [line for line in ran.stdout.splitlines() if line]


@pytest.mark.parametrize(("words", "offers"), [
    (("start", "tr"), ["track1/copy", "track1/softmax"]),
    (("start", "track1/s"), ["track1/softmax"]),
    (("grade", "sof"), ["softmax"]),
    (("inspect", "1.3"), ["1.3"]),
    (("hint", "missing-elements/s"), ["missing-elements/softmax"]),
    (("check", "track1/copy", "track1/s"), ["track1/softmax"]),
    (("grade", "mine.py", "--module", "track1/c"), ["track1/copy"]),
    (("start", "nothing"), []),
    (("new", ""), ["track1/", "track2/", "track3/", "track4/"]),
    (("grade", "--target", "h"), ["h100", "h200"]),
    (("bench", "--target", "h1"), ["h100"]),
    (("inspect", "--target", "h2"), ["h200"]),
    (("sta",), ["start", "status"]),
    (("doctor", "--at"), ["--attack"]),
], ids=" ".join)
def test_bash_is_offered_what_fits(home, words, offers) -> None:
    assert complete("bash", *words) == offers


def test_zsh_and_fish_are_offered_titles_too(home) -> None:
    assert complete("zsh", "start", "track1/s") == [
        """_arguments '*: :(("track1/softmax":"Stable softmax"))'"""]
    assert complete("fish", "start", "track1/s") == ["track1/softmax\tStable softmax"]


@pytest.fixture
def graded(run, judge) -> Path:
    """A workspace whose softmax was graded with a suite of three cases."""
    judge(toy.FAILING)
    run("start", "softmax")
    run("grade")
    file = Path("tritonlab-workspace/.tritonlab/cases.json")
    file.write_text(json.dumps({"track1/softmax": NAMES}))
    return file


@pytest.mark.parametrize(("shell", "word", "offers"), [
    ("bash", "4", ["'4 rows of 127 columns'", "'4 rows of 128 columns'"]),
    ("bash", "4\\ rows\\ of\\ 128", ["'4 rows of 128 columns'"]),
    ("bash", "'4 rows of 128", ["4 rows of 128 columns"]),
    ("bash", "soft", ["""'softmax: it'"'"'s all -inf'"""]),
    ("bash", "", ["'4 rows of 127 columns'", "'4 rows of 128 columns'",
                  """'softmax: it'"'"'s all -inf'"""]),
    ("fish", "4", NAMES[:2]),
])
def test_cases_are_those_of_the_last_grade(graded, shell, word, offers) -> None:
    assert complete(shell, "grade", "--case", word) == offers
    assert complete(shell, "grade", "track1/softmax", "--case", word) == offers
    assert complete(shell, "inspect", "1.3", "--case", word) == offers
    assert complete(shell, "grade", "track1/copy", "--case", word) == []


@pytest.mark.parametrize("content", ["", "[]", '{"track1/softmax": 3}', "rubbish"])
def test_damaged_names_of_cases_offer_nothing(graded, content) -> None:
    graded.write_text(content)

    assert complete("bash", "grade", "--case", "4") == []


def test_a_grade_keeps_the_names_of_all_cases(run, judge, course_root) -> None:
    suite = course_root / "suites/missing-elements/03-softmax/suite.py"
    suite.write_text(suite.read_text().replace("cases=[]", "cases=[correctness('one', rand(1)),"
                                               " correctness('two', rand(2))]").replace(
        "from grader.suite.spec",
        "from grader.suite import correctness, rand\nfrom grader.suite.spec"))
    judge(toy.FAILING)
    run("start", "softmax")

    run("grade")

    kept = json.loads(Path("tritonlab-workspace/.tritonlab/cases.json").read_text())
    assert kept == {"track1/softmax": ["one", "two"]}


def test_functions_are_those_with_hints(run, course_root) -> None:
    module = course_root / "tracks/missing-elements/03-softmax/module.toml"
    module.write_text(module.read_text().replace("todos = [1]", 'functions = ["glu", "swish"]'))
    run("start", "softmax")

    assert complete("bash", "hint", "--function", "") == ["glu", "swish"]
    assert complete("bash", "hint", "--function", "s") == ["swish"]


def test_nothing_is_said_where_nothing_can_be_offered(home, course_root) -> None:
    (course_root / "tracks/missing-elements/track.toml").write_text("number = ")

    assert complete("bash", "start", "tr") == []
    assert complete("bash", "grade", "--case", "4") == []


def test_a_press_of_tab_is_cheap(home) -> None:
    def spent_s() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        complete("bash", "start", "tr")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # the first press may compile modules, and a busy machine makes CPU seconds longer
    assert min(spent_s() for _ in range(4)) < MOST_CPU_S


def test_completing_cases_loads_neither_torch_nor_suites(graded) -> None:
    script = ("import sys\nfrom tritonlab.cli import app\ntry:\n    app.main()\nfinally:\n"
              "    print([m for m in ('torch', 'triton', 'numpy') if m in sys.modules])")
    ran = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, check=True,
                         env={**os.environ, "_TRITONLAB_COMPLETE": "complete_bash",
                              "COMP_WORDS": "tritonlab\ngrade\n--case\n4", "COMP_CWORD": "3"})

    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script(home, shell) -> None:
    ran = subprocess.run([sys.executable, "-m", "tritonlab"], capture_output=True, text=True,
                         env={**os.environ, "_TRITONLAB_COMPLETE": f"source_{shell}"}, check=True)

    assert f"_TRITONLAB_COMPLETE=complete_{shell}" in ran.stdout


def test_bash_itself_completes(home, tmp_path) -> None:
    command = tmp_path / "tritonlab"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tritonlab "$@"\n')
    command.chmod(0o755)
    script = (f'eval "$({command} --show-completion bash)"\n'
              f"COMP_WORDS=({command} start tr); COMP_CWORD=2\n"
              f"_tritonlab_completion {command}\n"
              'printf "%s\\n" "${COMPREPLY[@]}"')

    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout.split() == ["track1/copy", "track1/softmax"]
