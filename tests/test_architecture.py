"""The layout of the code: layers import one way, names are unique, the doors are light."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# From the lowest to the highest: a layer imports from itself and from those before it.
LAYERS = (
    "grader.text", "grader.finding", "grader.diagnosis.messages", "grader.report",
    "grader.recording", "grader.submission", "grader.suite", "grader.engine", "grader.sandbox",
    "grader.gpu", "grader.executor", "grader.worker", "grader.processes", "grader.diagnosis",
    "grader.judge", "grader.inspect", "grader.bench", "grader.attacks", "grader.selfcheck",
    "grader", "tritonlab.version", "tritonlab.interrupts", "tritonlab.errors", "tritonlab.course",
    "tritonlab.progress", "tritonlab.workspace", "tritonlab.grading", "tritonlab.verify",
    "tritonlab.authoring", "tritonlab.doctor", "tritonlab.render", "tritonlab.watch",
    "tritonlab.cli", "tritonlab.interpreter", "tritonlab.__main__", "tritonlab")
WITHOUT_TORCH = (
    "grader.text", "grader.finding", "grader.diagnosis.messages", "grader.report",
    "grader.submission", "grader.sandbox", "grader.gpu", "grader.attacks", "tritonlab")
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("grader", "tritonlab") for path in sorted((ROOT / package).rglob("*.py"))
    if "suites" not in path.parts and not {"tracks", "solutions"} & set(path.parts)}


@cache
def imports(module: str) -> frozenset[str]:
    """Modules that a module imports anywhere, for type checkers too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(SOURCES[module].read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in SOURCES else str(node.module) for name in inner}
    return frozenset(names)


def layer(module: str) -> int:
    """The index of the layer with the longest name that the module begins with."""
    names = [name for name in LAYERS if f"{module}.".startswith(f"{name}.")]
    return LAYERS.index(max(names, key=len))


@pytest.mark.parametrize("module", SOURCES)
def test_a_layer_imports_only_from_those_below_it(module):
    upward = {name for name in imports(module)
              if name.split(".")[0] in ("grader", "tritonlab") and layer(name) > layer(module)}

    assert not upward


def test_no_module_imports_itself_by_way_of_others():
    graph = {module: {name for name in imports(module) if name in SOURCES
                      and not module.startswith(f"{name}.")} for module in SOURCES}

    assert len(list(graphlib.TopologicalSorter(graph).static_order())) == len(graph)


@pytest.mark.parametrize("module", [name for name in SOURCES if name.startswith(WITHOUT_TORCH)])
def test_rooms_without_torch_do_not_import_it(module):
    assert not {name for name in imports(module) if name.split(".")[0] in ("torch", "triton")}


@pytest.mark.parametrize("module", [name for name in SOURCES
                                    if not name.startswith("tritonlab.render")])
def test_only_render_imports_rich(module):
    assert not {name for name in imports(module) if name.split(".")[0] == "rich"}


@pytest.mark.parametrize("statement", [
    "import grader", "import tritonlab", "import tritonlab.cli.app"])
def test_the_doors_are_light(statement):
    heavy = "[m for m in ('torch', 'triton', 'numpy') if m in sys.modules]"
    command = [sys.executable, "-c", f"import sys\n{statement}\nprint({heavy})"]

    result = subprocess.run(command, capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "[]"


def test_the_grader_shows_its_stages():
    entries = [path for path in (ROOT / "grader").iterdir() if path.name != "__pycache__"]

    files = [path.name for path in entries if path.is_file()]
    folders = [path.name for path in entries if path.is_dir() and any(path.iterdir())]

    assert len(files) <= 5
    assert len(folders) <= 16


def test_every_package_names_what_it_owns_in_five_lines():
    for module, path in SOURCES.items():
        if path.name == "__init__.py":
            doc = ast.get_docstring(ast.parse(path.read_text())) or ""
            assert 0 < len(doc.splitlines()) <= 5, module


def test_no_two_modules_of_a_package_differ_by_tense_or_number():
    stems = defaultdict(list)
    for module in SOURCES:
        package, _, name = module.rpartition(".")
        stems[package, re.sub(r"(s|ed|ing|er|ion)$", "", name)].append(name)

    assert not {names for key, names in stems.items() if len(names) > 1 for names in [tuple(names)]}


def test_no_two_public_classes_share_a_name():
    names = Counter(node.name for path in SOURCES.values()
                    for node in ast.walk(ast.parse(path.read_text()))
                    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))

    assert not {name: count for name, count in names.items() if count > 1}


def test_locals_and_parameters_name_what_they_hold():
    """Words that name nothing; fields of findings may be called ``seen``, after the report."""
    words = {"found", "known", "made", "said", "seen", "told", "what"}
    vague = [(module, node.lineno) for module, path in SOURCES.items()
             for function in ast.walk(ast.parse(path.read_text()))
             if isinstance(function, ast.FunctionDef | ast.Lambda) for node in ast.walk(function)
             if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                 and node.id in words) or (isinstance(node, ast.arg) and node.arg in words)]

    assert vague == []


def test_the_top_level_holds_nothing_else():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")

    folders = {line.split("/")[0] for line in tracked.stdout.splitlines() if "/" in line}

    assert folders <= {".ci", "tracks", "solutions", "grader", "tritonlab", "tests", "docs"}


def test_tests_that_belong_to_submissions_are_not_collected(pytestconfig):
    """Those of a package set TRITON_INTERPRET where they are imported."""
    theirs = [*(ROOT / "tests" / "fidelity").rglob("test_*.py")]

    assert theirs
    assert "fidelity" in pytestconfig.getini("norecursedirs")
