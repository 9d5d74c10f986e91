"""The house keeps its shape: imports run one way, listing is light, no stray folder."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = [path for package in ("grader", "tritonlab") for path in (ROOT / package).rglob("*.py")
         if "suites" not in path.parts and not {"tracks", "solutions"} & set(path.parts)]
MAY_IMPORT_TORCH = tuple(f"grader.{room}" for room in (
    "worker", "executor", "engine", "compare", "rounding", "amplitudes", "selftest", "judge",
    "session", "large", "outcome", "submission", "inputs", "draws", "decoys", "suite", "bulk",
    "device", "timing", "probe", "clocks", "peers", "diagnosis.effects",
    "sandbox.arena", "sandbox.zygote", "diagnosis.contrast", "diagnosis.where",
    "diagnosis.likeness", "diagnosis.separation", "diagnosis.details"))


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    """Modules that a file imports anywhere, those for type checkers apart."""
    tree = ast.parse(path.read_text())
    typing_only = {
        inner for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", ROOMS, ids=module_name)
def test_imports_run_one_way(path):
    name, used = module_name(path), imports(path)

    if name.startswith("grader"):
        assert not [module for module in used if module.split(".")[0] == "tritonlab"]
    if not name.startswith("tritonlab.render"):
        assert not [module for module in used if module.split(".")[0] == "rich"]
    if name.startswith(("grader.worker", "grader.executor", "grader.engine", "grader.sandbox")):
        judging = ("grader.judge", "grader.compare", "grader.diagnosis")
        assert not [module for module in used if module.startswith(judging)]
    if name.startswith("grader.engine"):
        assert not [m for m in used if m.startswith(("grader.executor", "grader.worker"))]


@pytest.mark.parametrize("path", ROOMS, ids=module_name)
def test_only_the_rooms_that_need_it_import_torch(path):
    if module_name(path).startswith(MAY_IMPORT_TORCH):
        return

    assert not [m for m in imports(path) if m.split(".")[0] in ("torch", "triton")]


def test_no_import_cycle():
    graph = {module_name(path): imports(path) for path in ROOMS}
    state: dict[str, int] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert state.get(name) != 1, f"a cycle: {' -> '.join([*path, name])}"
        if name in graph and name not in state:
            state[name] = 1
            # a package imports its own modules through its door; that is no cycle between rooms
            for used in graph[name]:
                if not used.startswith(name + "."):
                    visit(used, (*path, name))
            state[name] = 2

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("statement", ["import grader", "import tritonlab", "import tritonlab.cli"])
def test_the_doors_are_light(statement):
    heavy = "[m for m in ('torch', 'triton', 'numpy') if m in sys.modules]"
    command = [sys.executable, "-c", f"import sys\n{statement}\nprint({heavy})"]

    result = subprocess.run(command, capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "[]"


def test_the_top_level_holds_nothing_else():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")

    folders = {line.split("/")[0] for line in tracked.stdout.splitlines() if "/" in line}

    assert folders <= {".ci", "tracks", "solutions", "grader", "tritonlab", "tests", "docs"}


def test_tests_that_belong_to_submissions_are_not_collected(pytestconfig):
    """Those of a package set TRITON_INTERPRET where they are imported."""
    elsewhere = {path.relative_to(ROOT / "tests").parts[0]
                 for path in (ROOT / "tests").rglob("test_*.py") if path.parent.name != "tests"
                 or path.parent.parent != ROOT}

    assert elsewhere
    assert elsewhere <= set(pytestconfig.getini("norecursedirs"))
