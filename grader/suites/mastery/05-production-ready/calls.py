"""Drivers: what the learner's package does where no kernel's result is asked for."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import doctest
import importlib
import inspect
import io
import pickle
import sys
import warnings
from pathlib import Path
from unittest import mock

import torch
import triton
from triton.runtime.jit import JITFunction


def tests(module, stop):
    """The learner's tests, on the package that is there: their own, or another."""
    from grader.worker import pytest_runner

    file = Path(module.__file__).parent / "package" / "tests" / "test_add_rms_norm.py"
    return pytest_runner.run(file, stop=stop)


# ---------------------------------------------------------------------------------------------
# B: refusals and failures


def refused(module, *arguments):
    """What a call raises, as data; nothing where it raises nothing."""
    return _told(lambda: module.add_rms_norm(*arguments))


def configured(module, name, value):
    """What making a Config with one field raises."""
    return _told(lambda: module.Config(**{name: value}))


def refused_with(module, name, value, *arguments):
    """What a call with a Config of one field raises; without a name, value takes its place."""
    return _told(lambda: module.add_rms_norm(
        *arguments, config=module.Config(**{name: value}) if name else value))


def config_fields(module):
    """Name, default and kind of each parameter of Config."""
    return {name: (parameter.default, parameter.kind.name.lower())
            for name, parameter in inspect.signature(module.Config).parameters.items()}


def config_changes(module):
    """Whether a field of a Config can be set after it was made."""
    try:
        module.Config().max_columns = 7
    except (AttributeError, dataclasses.FrozenInstanceError):
        return False
    return True


def failing(module, kind, *arguments):
    """What becomes of a launch that fails in a known way, and how often one was tried."""
    error, launches = _failure(kind), []

    def launch(self, *args, **kwargs):
        launches.append(1)
        raise error

    with mock.patch.object(JITFunction, "run", launch), warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        told = _told(lambda: module.add_rms_norm(*arguments), error)
    return told | {"launches": len(launches)}


def _failure(kind):
    return {
        "compilation": lambda: triton.CompilationError(None, ast.Pass(lineno=3, col_offset=0),
                                                       "no such operation"),
        "shared memory": lambda: triton.OutOfResources(300_000, 232_448, "shared memory"),
        "memory": lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        "device": lambda: torch.AcceleratorError("CUDA error: an illegal memory access"),
        "driver": lambda: RuntimeError("Triton Error [CUDA]: misaligned address"),
        "text": lambda: RuntimeError("CUDA error: device-side assert triggered"),
        "bug": lambda: TypeError("'NoneType' object is not subscriptable"),
        "other": lambda: RuntimeError("the size of tensor a must match"),
        "interrupt": lambda: KeyboardInterrupt(),
        "exit": lambda: SystemExit(3),
    }[kind]()


def _told(call, error=None):
    try:
        call()
    except NotImplementedError:
        raise  # it is not written yet, whatever was asked for
    except BaseException as raised:
        return {
            "types": [kind.__name__ for kind in type(raised).__mro__],
            "message": str(raised)[:2_000],
            "itself": raised is error,
            "caused": raised.__cause__ is error,
            "problems": _texts(getattr(raised, "problems", None)),
            "required": _plain(getattr(raised, "required", None)),
            "limit": _plain(getattr(raised, "limit", None)),
            "resource": _plain(getattr(raised, "resource", None)),
            "copied": _copied(raised),
        }
    return {"types": []}


def _texts(values):
    return [str(value)[:500] for value in values][:50] if isinstance(values, list | tuple) else None


def _plain(value):
    return value if isinstance(value, int | str) else None


def _copied(error):
    """Whether an exception comes through pickling as it is: processes send them that way."""
    with contextlib.suppress(Exception):
        copy = pickle.loads(pickle.dumps(error))
        fields = ("problems", "required", "limit", "resource")
        return type(copy) is type(error) and str(copy) == str(error) and all(
            getattr(copy, name, None) == getattr(error, name, None) for name in fields)
    return False


# ---------------------------------------------------------------------------------------------
# D and E: the example, the benchmark


def example(module):
    """The examples of the docstring, run as doctest runs them."""
    function = module.add_rms_norm
    names = {**vars(sys.modules[function.__module__]), **vars(sys.modules["addrmsnorm"]),
             "torch": torch}
    tried = failed = 0
    said = io.StringIO()
    for found in doctest.DocTestFinder(recurse=False).find(function, "add_rms_norm", globs=names):
        result = doctest.DocTestRunner(verbose=False).run(found, out=said.write)
        tried, failed = tried + result.attempted, failed + result.failed
    return {"tried": tried, "failed": failed, "said": said.getvalue()[:2_000]}


def benchmark(module, *arguments):
    """What the benchmark writes to standard output for a command line."""
    script = importlib.import_module("benchmarks.bench_add_rms_norm")
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        script.main(["--json", "-", *arguments])
    return said.getvalue()[:200_000]
