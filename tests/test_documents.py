"""The documents name files, functions, layers and links that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_architecture import LAYERS
from tritonlab.course import course

ROOT = Path(__file__).parent.parent
DECISIONS = ROOT / "docs" / "decisions"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
SOURCES = [path for folder in ("grader", "tritonlab", "tests", "tracks", "solutions")
           for path in (ROOT / folder).rglob("*.py")]


def prose(document: Path) -> str:
    return re.sub(r"^(`{3,}).*?^\1", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)


def name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_link_leads_to_a_file(document):
    text = re.sub(r"`[^`]*`", "", prose(document))
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)

    assert not [link for link in links if not (document.parent / link).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_source_file_and_its_function_exist(document):
    named = re.findall(r"`([\w./]+\.py)(?:: ([\w.]+))?`", prose(document))

    for path, function in named:
        texts = [one.read_text() for one in SOURCES if one.as_posix().endswith(f"/{path}")]
        assert texts, path
        last = function.rpartition(".")[2]
        assert any(re.search(rf"\b(def|class) {last}\b", text) for text in texts) or not function, \
            f"{path}: {function}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_folder_exists(document):
    named = re.findall(r"`((?:grader|tritonlab|tests|docs)/[\w./-]*?)/?`", prose(document))

    assert not [folder for folder in named if not (ROOT / folder).exists()]


def test_the_layers_are_those_of_the_architecture_test():
    text = (ROOT / "docs" / "architecture.md").read_text()
    block = re.search(r"```text\ngrader: (.*?)tritonlab: (.*?)```", text, re.DOTALL)
    assert block

    listed = [f"{package}.{layer.strip()}" for package, layers in zip(
        ("grader", "tritonlab"), block.groups(), strict=True) for layer in layers.split(",")]

    assert listed == [layer for layer in LAYERS if "." in layer and "__" not in layer]


def test_the_index_lists_every_decision():
    index = (DECISIONS / "README.md").read_text()

    assert re.findall(r"\((\d{3}-[\w-]+\.md)\)", index) == sorted(
        path.name for path in DECISIONS.glob("[0-9]*.md"))


def test_the_page_of_the_course_lists_every_module_with_its_hours():
    text = (ROOT / "docs" / "course.md").read_text()

    rows = re.findall(r"^\| (\d\.\d+) `([\w-]+)`(, elective)? \|.*\| ([\d.]+) \|$", text,
                      re.MULTILINE)

    assert rows == [(module.number, module.slug, "" if module.core else ", elective",
                     f"{module.minutes / 60:.2g}") for module in course.load().modules]
