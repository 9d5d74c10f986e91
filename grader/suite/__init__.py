"""The vocabulary of suites: cases, inputs, tolerances, limits and mutants."""

from grader.recording.compiled_kernel import ALL_SUMS
from grader.recording.model import Alloc, Recording
from grader.report import Kind
from grader.suite import cases, inputs, spec
from grader.suite.cases import *  # noqa: F403 - what it lists in __all__, here and below
from grader.suite.inputs import *  # noqa: F403
from grader.suite.mutants import Mutant, read_mutants
from grader.suite.spec import *  # noqa: F403

__all__ = ["ALL_SUMS", "Alloc", "Kind", "Mutant", "Recording", "read_mutants"]
__all__ += cases.__all__
__all__ += inputs.__all__
__all__ += spec.__all__
