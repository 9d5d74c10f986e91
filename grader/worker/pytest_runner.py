"""Runs the learner's own tests under pytest, with every launch on the engine, under watch."""

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from grader.engine.interpreter.eager import interpreted
from grader.worker.fake_driver import capability

MAX_TESTS = 2_000
_MAX_WORDS = 300  # characters of a message that are kept
_PLUGINS = ("cacheprovider", "tritonlab-grader", "xdist", "faulthandler", "tmpdir", "pastebin",
            "junitxml", "logging", "terminal")


def run(file: Path, *, stop: bool = False) -> dict[str, Any]:
    """Run all tests of a file; nothing is printed, and no configuration file is read.

    A launch that accesses memory outside its tensors, or uninitialized memory, fails its
    test: on a GPU it would corrupt or use the memory of others.

    Args:
        file: of tests; what it imports has to be importable already.
        stop: at the first test that fails.

    Returns:
        ``tests``: for each its ``name``, ``markers``, ``outcome`` (passed, failed, error, skipped),
        ``why``, the ``line`` of the file where it failed (None if it did not fail there) and the
        ``code`` of that line. ``problems``: what kept tests from being found.
    """
    watched = _Watched()
    folder = str(file.parent)  # nothing above it is looked at: it may be out of reach
    arguments = ["--rootdir", folder, "--confcutdir", folder, "-c", os.devnull, "--capture=no",
                 "--import-mode=importlib", "--continue-on-collection-errors", str(file)]
    for plugin in _PLUGINS:
        arguments += ["-p", f"no:{plugin}"]
    if stop:
        arguments.append("--exitfirst")
    with _quiet():
        pytest.main(arguments, plugins=[OnEngine(), watched])
    tests = [test | {"why": test["why"].replace(f"{folder}{os.sep}", "")}
             for test in watched.tests.values()]
    problems = [why.replace(f"{folder}{os.sep}", "") for why in watched.problems]
    return {"tests": tests[:MAX_TESTS], "problems": problems[:20]}


def warm() -> None:
    """Run a tiny test once, so that forks find imported what pytest and comparisons need."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "test_sample.py"
        file.write_text("import torch\n\ndef test_sample():\n"
                        "    torch.testing.assert_close(torch.ones(2), torch.ones(2))\n")
        run(file)
        sys.modules.pop(file.stem, None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Neither plugins of other packages nor files of bytecode: the process may write no file."""
    with (mock.patch.dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
          mock.patch.object(sys, "dont_write_bytecode", True), warnings.catch_warnings()):
        yield


class OnEngine:
    """A plugin of pytest: launches run on the engine, and a faulty access fails its test."""

    _trace: Any = None

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        with interpreted(capability=capability()):  # a file may launch where it is imported
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        with interpreted(capability=capability()) as self._trace:
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        yield
        if self._trace.findings:
            raise AssertionError(self._trace.findings[0].seen)


class _Watched:
    """A plugin of pytest that collects outcomes."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.problems: list[str] = []

    def pytest_configure(self, config: pytest.Config) -> None:
        config.option.tbstyle = "line"  # the source around a failure takes longer than most tests
        for name in ("unit", "edge", "property", "regression", "gpu"):
            config.addinivalue_line("markers", f"{name}: a kind of test")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self.tests[item.nodeid] = {
            "name": item.name[:_MAX_WORDS], "outcome": "error", "why": "it did not end",
            "line": None, "code": "",
            "markers": sorted({mark.name for mark in item.iter_markers()})}

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.excinfo is not None:
            places = [entry for entry in call.excinfo.traceback if entry.path == item.path]
            if places:
                self.tests[item.nodeid] |= {
                    "line": places[-1].lineno + 1,
                    "code": str(places[-1].statement).strip()[:_MAX_WORDS]}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        entry = self.tests[report.nodeid]
        if report.when == "call":
            entry |= {"outcome": report.outcome, "why": _why(report)}
        elif report.failed:
            entry |= {"outcome": "error", "why": _why(report)}
        elif report.skipped:
            entry |= {"outcome": "skipped", "why": ""}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.problems.append(_why(report))


def _why(report: Any) -> str:
    """The message of a failure and the comparison that failed; of a missing fixture, its name."""
    if missing := getattr(report.longrepr, "errorstring", ""):
        return str(missing).strip().partition("\n")[0][:_MAX_WORDS]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext if report.failed else ""
    lines = [line for line in str(text).splitlines() if line.strip()]
    message = lines[0] if crash is not None and lines else lines[-1] if lines else ""
    if crash is not None:
        if message.rstrip().endswith(":") and len(lines) > 1:  # NumPy begins with an empty line
            message = f"{message.rstrip()} {lines[1].strip()}"
        message += next((f"; {line}" for line in lines[1:] if line.startswith("assert ")), "")
    return re.sub(r"^E\s+", "", message)[:_MAX_WORDS]
