"""What is asked of files that are read and not run: documents, workflow, version, checklist.

Every function takes the learner's files, path -> text, and raises an AssertionError that says what
is missing. Nothing of them is executed.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping

from grader.suite import sibling

workflow = sibling(__file__, "workflow")

Files = Mapping[str, str]
ROOT = "package/"
PACKAGE = ROOT + "addrmsnorm/"
README = ROOT + "README.md"
CI = ROOT + ".github/workflows/ci.yml"
ERRORS = ("InputTypeError", "InputValidationError", "KernelCompilationError",
          "KernelExecutionError", "KernelResourceError", "TritonKernelError")
NAMES = ("Config", "add_rms_norm", "add_rms_norm_kernel", *ERRORS)
_DEVICE = re.compile(r"\b(device|CPU|cpu|NVIDIA|AMD|GeForce|RTX|Radeon|[A-Z]{1,3}\d{2,4}[A-Z]*)\b")
MOST = 100_000  # characters of a text that is looked at
# None of these patterns can go over a text more than once: it is the learner's.
_HEADING = re.compile(r"^##[ \t]+(.+)$", re.MULTILINE)
_NUMBER = r"(0|[1-9]\d*)"
_SEMANTIC = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_BOX = re.compile(r"^[ \t]*[-*][ \t]+\[(?P<tick>[ xX])\](?P<text>.*(?:\n[ \t]+[^\s*-].*)*)",
                  re.MULTILINE)
_LINK = re.compile(r"\[([^\[\]\n]*)\]\((?P<path>[^()\s#]+)[^()\n]*\)")

# words of a box -> where its evidence may lie
BOXES = {
    "validated": "addrmsnorm/",
    "errors": "addrmsnorm/",
    "edge cases": "",
    "stable": "",
    "documented": "",
    "type hints": "addrmsnorm/",
    "regression": "tests/",
    "benchmark": "benchmarks/",
    "integration": ".github/",
    "changelog": "CHANGELOG.md",
}

# case of the table -> a word that its decision has to hold
EDGES = {"R = 0": "empty", "C = 0": "InputValidationError", "eps": "InputValidationError",
         "max_columns": "InputValidationError"}


# ---------------------------------------------------------------------------------------------
# D: documentation


def docstrings(files: Files) -> None:
    """Every public name has a docstring, that of the kernel and the function with all sections."""
    found = definitions(files)
    for name in NAMES:
        assert name in found, f"`{name}` is defined at the top of no file of {PACKAGE}"
        assert ast.get_docstring(found[name]), f"`{name}` has no docstring"
    function, kernel = found["add_rms_norm"], found["add_rms_norm_kernel"]
    text = _sections(function, ("Args", "Returns", "Raises", "Example"))
    _names_in(function, text["Args"], _parameters(function), "Args")
    _names_in(function, text["Raises"], ("InputTypeError", "InputValidationError",
                                         "KernelCompilationError", "KernelResourceError",
                                         "KernelExecutionError"), "Raises")
    assert ">>>" in text["Example"], (
        "the docstring of `add_rms_norm` has an Example without a line that begins with >>>, so "
        "nothing of it can be run")
    text = _sections(kernel, ("Computes", "Args", "Notes"))
    _names_in(kernel, text["Args"], _parameters(kernel), "Args")
    config = found["Config"]
    assert isinstance(config, ast.ClassDef), "`Config` is not a class"
    _names_in(config, ast.get_docstring(config) or "", (
        "num_warps", "max_columns", "check_outputs"), "docstring")


def type_hints(files: Files) -> None:
    """Every function of the package except kernels has type hints for parameters and result."""
    for path, tree in _modules(files):
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or any(
                    "jit" in ast.unparse(decorator) for decorator in function.decorator_list):
                continue
            arguments = function.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
                     *filter(None, (arguments.vararg, arguments.kwarg))]
            bare = [a.arg for a in every if a.annotation is None and a.arg not in ("self", "cls")]
            bare += [] if function.returns is not None else ["what it returns"]
            assert not bare, (f"`{function.name}` in {path}, line {function.lineno}, has no type "
                              f"hint for {' and '.join(bare)}")


def readme(files: Files) -> None:
    """The package's README states contract, edge cases, limits and what was measured on what."""
    sections = _readme(files)
    for title in ("Contract", "Edge cases", "Limits", "Performance"):
        assert len(sections.get(title, "").split()) >= 8, (
            f"the section `## {title}` of {README} says next to nothing")
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in sections["Edge cases"].splitlines() if line.strip().startswith("|")]
    for case, word in EDGES.items():
        cells = next((row for row in rows if case in row[0]), None)
        assert cells is not None and len(cells) > 1 and cells[1], (
            f"the table of edge cases in {README} has no decision for the case `{case}`")
        assert word in cells[1], (
            f"the decision for `{case}` in {README} does not mention {word}, which is what the "
            f"contract asks for there: “{cells[1]:.80}”")
    performance = sections["Performance"]
    assert re.search(r"\d", performance) and re.search(r"GB/s|bytes", performance), (
        f"the section `## Performance` of {README} gives no figure in GB/s, or in bytes without a "
        f"GPU")
    assert _DEVICE.search(performance), (
        f"the section `## Performance` of {README} names no device, such as an H200 or a CPU")


# ---------------------------------------------------------------------------------------------
# F, G, H


def continuous_integration(files: Files) -> None:
    """The workflow parses, starts by itself, and runs the tests with and without a GPU."""
    try:
        whole = workflow.read(_text(files, CI))
    except workflow.NotYaml as error:
        raise AssertionError(f"{CI} cannot be read as YAML: {error}") from None
    assert isinstance(whole, dict), f"{CI} holds no mapping"
    events = whole.get("on")
    events = [events] if isinstance(events, str) else events or ()
    for event in ("push", "pull_request"):
        assert event in events, f"{CI} is not started by the event `{event}`"
    jobs = whole.get("jobs")
    assert isinstance(jobs, dict) and jobs, f"{CI} has no jobs"
    cpu = gpu = False
    for name, job in jobs.items():
        assert isinstance(job, dict), f"the job `{name}` of {CI} is empty"
        steps = [step for step in job.get("steps") or () if isinstance(step, dict)]
        _check_checkout(name, steps)
        labels = job.get("runs-on")
        labels = [labels] if isinstance(labels, str) else labels or []
        hosted = "self-hosted" not in labels
        for label in labels if hosted and isinstance(labels, list) else ():
            assert "gpu" not in str(label).lower(), (
                f"the job `{name}` of {CI} runs on `{label}`; there is no hosted runner with that "
                f"name, and a GPU of one's own is `self-hosted`")
        if not _runs_tests(name, steps):
            continue
        if hosted:
            cpu |= _interprets(whole, job, steps)
        else:
            assert job.get("if") or job.get("continue-on-error") is True, (
                f"the job `{name}` of {CI} needs a runner of one's own, and a repository without "
                f"one would never be green: nothing allows the job to be absent")
            gpu = True
    assert cpu, (f"no job of {CI} runs the tests on a hosted runner with TRITON_INTERPRET set to "
                 f"1, so without a GPU nothing is tested")
    assert gpu, f"no job of {CI} runs the tests on a self-hosted runner, where a GPU may be"


def version(files: Files) -> None:
    """A semantic version, and an entry for it at the top of the changelog."""
    path = PACKAGE + "__init__.py"
    value = next((node.value.value for node in _parse(path, files[path]).body
                  if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
                  and any(getattr(target, "id", "") == "__version__" for target in node.targets)),
                 None)
    assert isinstance(value, str), f"{path} has no line `__version__ = \"...\"`"
    assert _SEMANTIC.fullmatch(value), (
        f"`{value}` in {path} is not a semantic version of three integers separated by dots")
    assert value != "0.0.0", f"{path} still has version 0.0.0, which stands for no release"
    path = ROOT + "CHANGELOG.md"
    text = _text(files, path)
    headings = list(_HEADING.finditer(text))
    released = [h for h in headings if "unreleased" not in h[1].lower()]
    assert released, f"{path} has no entry; an entry begins with `## ` and its version"
    latest = released[0]
    assert value in re.split(r"[\s\[\]()v:]+", latest[1]), (
        f"the latest entry of {path} is `{latest[1]}`, and the package has version {value}")
    following = next((h.start() for h in headings if h.start() > latest.start()), None)
    assert text[latest.end():following].strip(), (
        f"the entry for {value} in {path} says nothing about what changed")


def checklist(files: Files) -> None:
    """All ten boxes are ticked, each with a link to a file that is there and could prove it."""
    text = _readme(files).get("Checklist", "")
    boxes: dict[str, re.Match[str]] = {}
    for shown in (r"\1", ""):  # the words outside of links count more than those of the links
        boxes |= {key: box for box in _BOX.finditer(text)
                  for key in BOXES if key in _LINK.sub(shown, box["text"]).lower()}
    wrong = []
    for key, place in BOXES.items():
        box = boxes.get(key)
        if box is None:
            wrong.append(f"the box about “{key}” is missing")
            continue
        label = _LINK.sub(r"\1", box["text"]).strip(" :\n")
        links = [posixpath.normpath(link["path"]) for link in _LINK.finditer(box["text"])]
        fitting = [link for link in links if ROOT + link in files and link.startswith(place)]
        fitting += [link for link in links if any(
            path.startswith(f"{ROOT}{link}/") for path in files) and f"{link}/".startswith(place)]
        if box["tick"] == " ":
            wrong.append(f"“{label:.60}” is not ticked")
        elif not links:
            wrong.append(f"“{label:.60}” has no link to its evidence")
        elif not fitting:
            at = f" in {place}" if place else ""
            wrong.append(f"“{label:.60}” links to {links[0]}, which is not a file of the "
                         f"package{at}")
    are = "is" if len(wrong) == 1 else "are"
    assert not wrong, f"{len(wrong)} of 10 boxes {are} open: {'; '.join(wrong)}"


# ---------------------------------------------------------------------------------------------


def definitions(files: Files) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Functions and classes at the top of the files of the package, by name."""
    return {node.name: node for _, tree in _modules(files) for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _modules(files: Files) -> Iterator[tuple[str, ast.Module]]:
    for path, text in files.items():
        if path.startswith(PACKAGE) and path.endswith(".py"):
            yield path, _parse(path, text)


def _parse(path: str, text: str) -> ast.Module:
    return ast.parse(text, path)  # every file was parsed once before anything was judged


def _sections(node: ast.AST, titles: tuple[str, ...]) -> dict[str, str]:
    """The text below each `Title:` of a docstring."""
    assert isinstance(node, ast.FunctionDef), "a function is expected where a class stands"
    text = ast.get_docstring(node) or ""
    parts = re.split(r"^[ \t]*([A-Z]\w+?)s?:[ \t]*$", text, flags=re.MULTILINE)
    found = {title.removesuffix("s"): body
             for title, body in zip(parts[1::2], parts[2::2], strict=True)}
    for title in titles:
        assert found.get(title.removesuffix("s"), "").strip(), (
            f"the docstring of `{node.name}` has no section `{title}:`, or an empty one")
    return {title: found[title.removesuffix("s")] for title in titles}


def _names_in(node: ast.FunctionDef | ast.ClassDef, text: str, names: tuple[str, ...],
              where: str) -> None:
    missing = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)]
    assert not missing, f"{where} of `{node.name}` does not mention {' and '.join(missing)}"


def _parameters(node: ast.AST) -> tuple[str, ...]:
    assert isinstance(node, ast.FunctionDef)
    arguments = node.args
    return tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _readme(files: Files) -> dict[str, str]:
    parts = _HEADING.split(_text(files, README))
    return dict(zip(map(str.strip, parts[1::2]), parts[2::2], strict=True))


def _text(files: Files, path: str) -> str:
    assert len(files[path]) <= MOST, f"{path} has more than {MOST:,} characters; who would read it?"
    return files[path]


def _check_checkout(name: str, steps: list[dict[str, object]]) -> None:
    used = [str(step["uses"]) for step in steps if "uses" in step]
    taken = [action for action in used if action.startswith("actions/checkout@")]
    assert taken, f"the job `{name}` of {CI} does not check the repository out"
    match = re.fullmatch(r"v(\d+)(\.\d+)*|[0-9a-f]{40}", taken[0].partition("@")[2])
    assert match and (match[1] is None or int(match[1]) >= 4), (
        f"the job `{name}` of {CI} uses `{taken[0]}`; versions before v4 run on a Node.js that "
        f"hosted runners no longer have")


def _runs_tests(name: str, steps: list[dict[str, object]]) -> bool:
    runs = False
    for step in steps:
        for line in str(step.get("run", "")).splitlines():
            assert not re.search(r"\bpython3?\s+(\./)?tests/?(\s|$)", line), (
                f"the job `{name}` of {CI} runs `{line.strip()}`: a folder is not a script, and "
                f"nothing of it would be tested")
            runs |= any(re.search(r"\bpytest\b", command) and "install" not in command
                        for command in re.split(r"&&|\|\||;", line))
    return runs


def _interprets(*places: object) -> bool:
    """Whether the workflow, a job, or a step that runs the tests sets TRITON_INTERPRET to 1."""
    whole, job, steps = places
    assert isinstance(whole, dict) and isinstance(job, dict) and isinstance(steps, list)
    running = [step for step in steps if "pytest" in str(step.get("run", ""))]
    for place in (whole, job, *running):
        environment = place.get("env")
        if isinstance(environment, dict) and str(environment.get("TRITON_INTERPRET")) == "1":
            return True
    return any("TRITON_INTERPRET=1" in str(step.get("run")) for step in running)
