"""Lessons and hints in another language: shown, checked, and English where they are missing."""

from __future__ import annotations

import re

import pytest

from tests.support import authored
from tritonlab.authoring import checks

GERMAN = """
[hints.de]
title = "Vorbereitung"
rungs = ["Was fehlt?", "Ein Dekorator.", "Eine Zeile."]
"""


@pytest.fixture
def german(course_root):
    """The toy course, whose softmax has a German lesson, and German hints for TODO 1."""
    folder = course_root / "tracks" / "missing-elements" / "03-softmax"
    (folder / "README.de.md").write_text(
        "# Softmax\n\n## Wozu das gut ist <!-- why-it-exists -->\n\nText.\n")
    file = folder / "module.toml"
    first, rest = file.read_text().split('\n[[hints]]\ngroup = "B"')
    file.write_text(f'{first}{GERMAN}\n[[hints]]\ngroup = "B"{rest}')
    return folder


def test_a_lesson_is_read_in_its_language(run, german):
    result = run("read", "softmax", "--lang", "de", "--json")

    assert result.code == 0
    assert "Wozu das gut ist" in result.out
    assert result.err == ""


@pytest.mark.parametrize("language", ["fr", "../de"])
def test_a_lesson_that_is_not_translated_is_read_in_english(run, german, language):
    result = run("read", "softmax", "--lang", language, "--plain")

    assert result.code == 0
    assert result.out.startswith("# Stable softmax")
    assert result.err == (f"The lesson of track1/softmax is not translated to '{language}', so it "
                          "is shown in English.\n")


def test_a_hint_is_shown_in_its_language_or_in_english(run, german):
    run("start", "softmax")

    own = run("hint", "--todo", "1", "--lang", "de", "--plain")
    other = run("hint", "--todo", "2", "--lang", "de", "--plain")
    english = run("hint", "--todo", "1", "--plain")

    assert "Vorbereitung" in own.out and "Was fehlt?" in own.out and own.err == ""
    assert "Which row?" in other.out
    assert "This hint is not translated to 'de', so it is shown in English." in other.err
    assert "A decorator." in english.out  # the rungs are counted together


@pytest.fixture
def module(tmp_path):
    """A module whose German lesson has all sections."""
    module = authored.make(tmp_path)
    text = module.file("tracks/README.md").read_text()
    module.file("tracks/README.de.md").write_text(re.sub(
        r"(?m)^## (.+)$", lambda match: f"## Teil <!-- {anchor(match[1])} -->", text))
    return module.again()


def anchor(heading: str) -> str:
    return re.sub(r"[^a-z]+", "-", heading.lower())


def faults(module) -> list[str]:
    return [fault for check in ("nothing astray", "headings and diagrams of the lesson",
                                "rungs of hints")
            for fault in checks.READ[check](module.material)]


def test_a_whole_translation_passes(module):
    assert faults(module) == []


@pytest.mark.parametrize(("find", "put", "fault"), [
    ("Teil <!-- pitfalls -->", "Fallen",
     "README.de.md: the section 'Fallen' has no anchor such as <!-- the-idea -->"),
    ("<!-- pitfalls -->", "<!-- traps -->",
     "README.de.md has a section <!-- traps -->, which is not a standard section"),
    ("<!-- pitfalls -->", "<!-- going-further -->",
     "README.de.md has no section <!-- pitfalls -->")])
def test_a_section_that_is_missing_or_unknown_is_named(module, find, put, fault):
    assert fault in faults(module.edit("tracks/README.de.md", find, put))


def test_sections_out_of_order_are_told(module):
    module = module.edit("tracks/README.de.md", "<!-- pitfalls -->", "<!-- x -->")
    module = module.edit("tracks/README.de.md", "<!-- best-practices -->", "<!-- pitfalls -->")
    module = module.edit("tracks/README.de.md", "<!-- x -->", "<!-- best-practices -->")

    assert faults(module) == ["README.de.md: the sections are out of order"]


def test_translated_hints_have_three_rungs(module):
    text = module.file("tracks/module.toml").read_text()
    module.file("tracks/module.toml").write_text(
        f'{text}\n[hints.de]\ntitle = "Rechnen"\nrungs = ["Was?"]\n')

    (fault,) = faults(module.again())

    assert re.fullmatch(r"module.toml: \[hints.de\] of group \w has 1 rungs, not 3", fault)
