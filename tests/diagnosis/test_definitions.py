"""The function that a failure without a line is about."""

import pytest

from grader.diagnosis.definitions import place

KERNEL = """\
import triton

REPORTS = {}


class Refused(ValueError):
    pass


@triton.jit
def scale_kernel(x_ptr):
    pass


def scale(x):
    check(x)
    scale_kernel[(1,)](x)


@triton.jit
def pair_kernel(x_ptr):
    pass


def pair(x):
    scale_kernel[(1,)](x)
    pair_kernel[(1,)](x)


def check(x):
    raise Refused


def unrelated(x):
    pass
"""
CALLS = """\
def refusal(module, x):
    try:
        return module.check(x)
    except module.Refused:
        return True


def scaled(module, x):
    module.check(x)
    return module.scale(x)


def report(module, name):
    return module.REPORTS[name]


def everything(module):
    return module.pair, module.unrelated, module.scale
"""
FILES = (("kernel.py", KERNEL),)


@pytest.mark.parametrize(("about", "code", "says"), [
    ("scale", "N01", "In `scale` (line 15) or `scale_kernel` (line 11)"),
    ("scale", "E01", "In `scale` (line 15)"),
    ("pair", "N01", "In `pair` (line 25)"),
    ("refusal", "E01", "In `check` (line 30)"),
    ("scaled", "Q01", "In `scale` (line 15)"),
    ("report", "Q01", "In `REPORTS` (line 3)"),
    ("reports", "Q01", "In `REPORTS` (line 3)"),
    ("everything", "Q01", ""),
    ("absent", "N01", ""),
], ids=["with its kernel", "a refusal has no kernel", "of two kernels, none",
        "by way of calls.py", "the outermost function", "a constant", "a constant by its name",
        "more than two", "not there"])
def test_a_failure_names_the_function_of_its_case(about, code, says):
    assert place(about, code, CALLS, FILES) == says


def test_of_several_files_the_right_one_is_named():
    files = (("kernel.py", "from package.api import scale\n"), ("package/api.py", KERNEL))

    assert place("scale", "E01", "", files) == "In `scale` (line 15 of package/api.py)"


def test_a_name_of_another_module_is_no_function_of_the_learner():
    calls = "from tools import runner\n\n\ndef tests(module):\n" \
        "    return runner.unrelated(module.__file__, 'test_scale.py')\n"

    assert place("tests", "U02", calls, FILES) == ""
    assert place("tests", "U02", calls, (*FILES, ("tests/test_scale.py", ""))) == \
        "In tests/test_scale.py"


def test_a_file_that_is_not_python_names_no_function():
    assert place("scale", "N01", "", (("kernel.py", "def scale(:"),)) == ""
