"""Every message of every verb: what is kept, that it says what next, and that nothing hides in it.

`python -m tests.messages --write` keeps what is said now, after a review of the difference.
"""

from __future__ import annotations

import re

import pytest

from tests.messages.situations import SITUATIONS
from tests.messages.stage import Situation, kept, spoken
from tritonlab.cli import app as cli

pytestmark = pytest.mark.course

# How the last sentence begins where it is no command: it says what to do.
ADVICE = ("Check", "Put", "Copy", "Edit", "Free", "Go", "Install", "Let", "Make", "Move", "Name",
          "Pass", "Remove", "Repeat", "Say", "Set", "Type", "Use")


@pytest.mark.parametrize("verb", SITUATIONS)
def test_a_verb_says_what_is_kept(verb, sandbox) -> None:
    assert spoken(SITUATIONS[verb], sandbox) == kept(verb).read_text()


def test_no_script_waits_in_vain() -> None:
    """A session whose script waits for a sentence that does not come is ended by SIGTERM."""
    assert [verb for verb in SITUATIONS if "exit code 143" in kept(verb).read_text()] == []


def test_no_verb_is_left_out() -> None:
    verbs = {command.name or command.callback.__name__ for command in cli.app.registered_commands}

    assert verbs <= set(SITUATIONS)
    assert {path.stem for path in kept("").parent.glob("*.txt")} == set(SITUATIONS)


def told() -> list[tuple[Situation, list[str], list[str], int]]:
    """What is kept, by situation: standard output, standard error, exit code."""
    found = []
    for verb, situations in SITUATIONS.items():
        parts = kept(verb).read_text().split("=== ")[1:]
        for situation, part in zip(situations, parts, strict=True):
            lines = part.splitlines()
            assert lines[0] == situation.title
            out, err = ([line[4:].strip() for line in lines if line.startswith(f"{name}|")]
                        for name in ("out", "err"))
            code = next(int(line.split()[-1]) for line in lines if line.startswith("exit code"))
            found.append((situation, out, err, code))
    return found


@pytest.mark.parametrize(("situation", "out", "err", "code"), [
    pytest.param(*one, id=f"{one[0].command}: {one[0].title}") for one in told()
    if one[0].ends])
def test_every_message_ends_with_what_to_do_next(situation, out, err, code) -> None:
    last = (err if code >= 2 and err else out)[-1]

    sentence = re.split(r"(?<=[.?]) ", last)[-1]
    assert "`tritonlab " in last or re.search(r": tritonlab \w", last) or \
        sentence.startswith(ADVICE), last


@pytest.mark.parametrize(("situation", "out", "err", "code"), [
    pytest.param(*one, id=f"{one[0].command}: {one[0].title}") for one in told()])
def test_a_message_is_calm_and_where_it_belongs(situation, out, err, code) -> None:
    said = [line for line in (*out, *err) if line]

    assert not [line for line in said if line.endswith("!")]
    assert not [line for line in said if "Traceback" in line]
    if code == 2:
        assert not out
        assert err
    if code == 0:
        assert out
