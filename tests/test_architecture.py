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

from grader.diagnosis import messages

ROOT = Path(__file__).parent.parent
# From the lowest to the highest: a layer imports from itself and from those before it.
LAYERS = (
    "grader.text", "grader.finding", "grader.diagnosis.messages", "grader.report",
    "grader.recording", "grader.submission", "grader.suite", "grader.engine", "grader.sandbox",
    "grader.gpu", "grader.executor", "grader.worker", "grader.processes", "grader.diagnosis",
    "grader.judge", "grader.inspect", "grader.trace", "grader.bench", "grader.attacks",
    "grader.selfcheck",
    "grader", "tritonlab.version", "tritonlab.interrupts", "tritonlab.errors", "tritonlab.course",
    "tritonlab.progress", "tritonlab.workspace", "tritonlab.grading", "tritonlab.verify",
    "tritonlab.formats", "tritonlab.authoring", "tritonlab.classroom", "tritonlab.doctor",
    "tritonlab.render", "tritonlab.trace",
    "tritonlab.watch", "tritonlab.cli", "tritonlab.notebook", "tritonlab.interpreter",
    "tritonlab.__main__", "tritonlab")
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


def test_a_command_starts_without_suites_and_classes():
    late = ("grader.suite", "tritonlab.classroom.book", "tritonlab.formats.junit")
    code = f"import sys, tritonlab.cli.app\nprint([m for m in {late} if m in sys.modules])"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                            check=True)

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


# Sentences of their own have the table of codes, what is no finding of a grade (isolation,
# attacks, `doctor`, `bench`), the vocabulary of authors, and a word that the worker prints.
WITH_SENTENCES = (
    "grader.diagnosis.messages", "grader.diagnosis.codes", "grader.sandbox", "grader.attacks",
    "grader.selfcheck", "grader.bench", "grader.suite", "grader.worker.fake_driver")


def literals(tree: ast.AST) -> list[str]:
    """Strings outside docstrings and exceptions; a placeholder of an f-string is `0`."""
    match tree:
        case ast.Raise() | ast.Assert() | ast.Expr(ast.Constant()) | ast.Call(
                ast.Attribute(attr="__init__")):
            return []
        case ast.JoinedStr(parts):
            return ["".join(part.value if isinstance(part, ast.Constant) else "0"
                            for part in parts)]
        case ast.Constant(str(text)):
            return [text]
    return [text for node in ast.iter_child_nodes(tree) for text in literals(node)]


@pytest.mark.parametrize("module", [name for name in SOURCES if name.startswith("grader.")
                                    and not name.startswith(WITH_SENTENCES)])
def test_only_messages_make_sentences(module):
    tree = ast.parse(SOURCES[module].read_text())
    data = [argument for call in ast.walk(tree) if isinstance(call, ast.Call)
            and ast.unparse(call.func).split(".")[-1] in ("fault", "Finding", "within")
            for argument in (*call.args[1:], *call.keywords)]

    sentences = [text for text in literals(tree) if re.fullmatch(r"[A-Z`0](\S* ){3,}.*\.", text)]
    figures = [text for argument in data for text in literals(argument)
               if re.search(r"[a-z] [a-z]+ [a-z]", text) and text not in messages._FAULTS]

    assert (sentences, figures) == ([], [])


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
