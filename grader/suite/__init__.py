"""What authors of modules write: cases, inputs, tolerances, limits and mutants."""

from grader.recording.compiled_kernel import ALL_SUMS
from grader.recording.model import Alloc, Recording
from grader.report import Kind
from grader.suite.cases import (
    Call,
    Case,
    CheckResult,
    CompiledCode,
    Limits,
    Property,
    Reading,
    Tree,
    call,
    correctness,
    edge,
    launchable,
    performance,
    reads,
    refuses,
    sizes,
)
from grader.suite.inputs import (
    FLOATS,
    Input,
    Size,
    Sparse,
    equal_rows,
    extremes,
    full,
    integers,
    rand,
    row,
    row_with,
    rows,
    special,
    spike,
    wide,
)
from grader.suite.mutants import Mutant, read_mutants
from grader.suite.spec import (
    EXACT,
    FLOAT32,
    KAPPA,
    TENSOR_CORES,
    Amplitude,
    Bench,
    Cost,
    Function,
    Suite,
    Tolerance,
    digest,
    load,
    sibling,
)

__all__ = ["ALL_SUMS", "EXACT", "FLOAT32", "FLOATS", "KAPPA", "TENSOR_CORES", "Alloc", "Amplitude",
           "Bench", "Call", "Case", "CheckResult", "CompiledCode", "Cost", "Function", "Input",
           "Kind", "Limits", "Mutant", "Property", "Reading", "Recording", "Size", "Sparse",
           "Suite", "Tolerance", "Tree", "call", "correctness", "digest", "edge", "equal_rows",
           "extremes", "full", "integers", "launchable", "load", "performance", "rand",
           "read_mutants", "reads", "refuses", "row", "row_with", "rows", "sibling", "sizes",
           "special", "spike", "wide"]
