"""Every verb on every terminal: without colour, with ASCII only, narrow and wide."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import pytest

from tests.messages.situations import SITUATIONS
from tests.messages.stage import Situation, act, small_course, stage
from tritonlab.authoring import runner
from tritonlab.doctor import environment_checks
from tritonlab.grading import grade, kernels
from tritonlab.workspace.submission import Submission

pytestmark = pytest.mark.course

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@pytest.fixture(scope="module")
def a_course() -> Iterator[Path]:
    with small_course() as root:
        yield root


APART = ("tritonlab", "watch")  # typer shows the one; the other has terminals of its own


def rendered() -> list[tuple[str, Situation]]:
    """A situation that is shown at length for every verb."""
    chosen = {"grade": "a wrong kernel", "inspect": "a right kernel", "bench": "a right kernel",
              "tour": "the whole", "check": "all is proved", "solution": "given up",
              "reset": "your work, kept in a backup", "status": "one module passed",
              "certificate": "one module passed, with a name", "list": "one module passed"}
    return [(verb, next(one for one in situations
                        if one.title == chosen.get(verb, situations[0].title)))
            for verb, situations in SITUATIONS.items() if verb not in APART]


ALL = [pytest.param(one, id=verb) for verb, one in rendered()]


def shown(situation: Situation, root: Path, box: object, encoding: str = "utf-8",
          **environment: str) -> str:
    with stage(root, box, TRITONLAB_PLAIN="", **environment) as set_up:
        said = act(situation, set_up, encoding=encoding)
        return said.out


def words(text: str) -> list[str]:
    """All words and figures; lines and signs around them may differ from terminal to terminal."""
    varying = r"\b\d+(\.\d+)? s\b|/tmp/\S+|\d+\.\d GiB|\d{4}-\d\d-\d\dT?\d*(-\d+)?"
    plain = re.sub(varying, "", COLOUR.sub("", text)).replace("µ", "u")  # as ASCII has it
    return re.findall(r"[A-Za-z0-9]+", plain)


@pytest.fixture(scope="module", autouse=True)
def the_same_answers() -> Iterator[None]:
    """What is only shown in another way is not graded, compiled or timed again."""
    answers: dict[object, object] = {}

    def again(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def answer(*args: object, **options: object) -> object:
            submission = args[0] if isinstance(args[0], Submission) else None
            key = name, submission and submission.kernel.read_bytes(), str(options.get("target"))
            if key not in answers:
                answers[key] = real(*args, **options)
            return answers[key]
        return answer

    with ExitStack() as held:
        for room, name in ((grade, "grade"), (kernels, "inspect"), (kernels, "bench"),
                           (runner, "prove")):
            held.enter_context(mock.patch.object(room, name, again(name, getattr(room, name))))
        held.enter_context(mock.patch.object(
            environment_checks, "display", lambda *terminal: environment_checks.Check(
                "terminal", environment_checks.Status.GOOD, "any")))
        yield


@pytest.mark.parametrize("situation", ALL)
def test_colour_only_repeats_what_words_say(situation, a_course, sandbox) -> None:
    coloured = shown(situation, a_course, sandbox, FORCE_COLOR="1", TERM="xterm-256color")

    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        bare = shown(situation, a_course, sandbox, **{name: value})
        assert words(bare) == words(coloured)
        assert not CONTROL.search(bare)


@pytest.mark.parametrize("situation", ALL)
def test_a_terminal_that_knows_ascii_only_is_told_the_same(situation, a_course, sandbox) -> None:
    full = shown(situation, a_course, sandbox)
    poor = shown(situation, a_course, sandbox, encoding="ascii")

    assert poor.isascii()
    assert words(poor) == words(full)


@pytest.mark.parametrize("situation", ALL)
@pytest.mark.parametrize("width", ["40", "200"])
def test_no_width_breaks_a_verb_or_a_command(situation, width, a_course, sandbox) -> None:
    said = shown(situation, a_course, sandbox, COLUMNS=width)

    assert "tritonlab " in said.splitlines()[-1]
