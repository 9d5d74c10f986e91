"""A pytest plugin that writes down which tests fail, one to a line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FILE = "TRITONLAB_FAILURES"  # the variable of the environment that names the file


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _write(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _write(report.nodeid)


def _write(name: str) -> None:
    with Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
        file.write(f"{name}\n")
