"""Explains findings: usual cause, place, next step and order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from grader.diagnosis import messages
from grader.diagnosis.solution_contrast import Cause
from grader.diagnosis.todo_pointers import agrees, line_of, line_of_warps, places_of
from grader.finding import Sign, value_of
from grader.report import Finding
from grader.submission.dataflow import has_mask, lines_of_grid
from grader.suite import Mutant

# code -> usual cause, valid for every module; empty if there is none. A report shows one failure,
# the first in the order of this table. A store outside a tensor explains more than a load outside
# it, and overlapping stores explain missing ones.
MEANINGS = {
    "P02": "Python cannot import the file, so no code was run.",
    "P01": "The exercise still has blanks.",
    "P03": "A function is a kernel only if it is decorated with `@triton.jit`.",
    "P04": "The grader calls the function by the name and parameters given in the README.",
    "L01": "A grid is a tuple of one to three integers, even in one dimension, and CUDA limits "
           "the size of each axis.",
    "L03": "The grid is larger than the problem, so some programs have no work.",
    "L05": "The Triton compiler rejects this code, so it does not run on any GPU.",
    "X01": "Triton kernels must compute the result; host code may only allocate, view and copy "
           "tensors and check arguments.",
    "R04": "The code allocates more memory than a case of this size needs.",
    "R02": "A loop does not terminate, or does far more work than the case needs.",
    "R03": "The process that ran the code crashed or exited, so there is no result to judge.",
    "R01": "The code raised an exception instead of returning a result.",
    "M07": "Inputs belong to the caller and must not be modified.",
    "M08": "The address computation is right only for contiguous tensors; use the strides of each "
           "tensor.",
    "M05": "An index above 2**31 - 1 was computed in 32-bit integers and overflowed.",
    "M02": "Some indices of the store are outside the tensor, and the mask is missing or wrong.",
    "M01": "Some indices of the load are outside the tensor, and the mask is missing or wrong.",
    "M04": "Two programs store to the same elements: their offsets do not depend correctly on the "
           "program id.",
    "M03": "No program stores these elements: the grid is too small, or the offsets or the mask "
           "skip them.",
    "M06": "The result depends on undefined values: masked-off elements loaded without `other`, or "
           "memory that was never written.",
    "M09": "Programs run in any order, but the result depends on their order.",
    "S01": "The result must have the shape, dtype and device that the contract specifies.",
    "E01": "The contract requires an exception here, before any launch.",
    "E02": "The contract requires an exception of a different type.",
    "E03": "The message should name the argument, the expected value and the actual value.",
    "N03": "NaN and infinities in the input must propagate as the contract specifies.",
    "N02": "An intermediate value overflowed although the result is representable, or an operation "
           "is undefined there, such as 0 / 0 or the square root of a negative number.",
    "N04": "An intermediate value, most often an accumulator, has a dtype with too few bits.",
    "N05": "The factors of a product were rounded to 10 mantissa bits; float32 has 23. Float16 "
           "and TF32 have 10, and `tl.dot` uses TF32 for float32 operands unless "
           "`input_precision` requests full precision.",
    "N01": "The formula, an offset or a mask differs from what the module asks for.",
    "T05": "The blocks of a program and its pipeline stages must fit in the shared memory of one "
           "SM (streaming multiprocessor).",
    "T01": "The kernels read or write memory more often than necessary.",
    "T02": "Memory is moved in sectors of 32 bytes: consecutive elements of a block should be "
           "contiguous in memory, so that the access is coalesced.",
    "T03": "The work is split into too many launches or programs, or into too few.",
    "T04": "A program holds more values than fit in the registers of its threads: use smaller "
           "blocks or more warps.",
    "T06": "The compiler could not generate the fast instructions; check which sizes, dtypes and "
           "options they require.",
    "T08": "The measured time is shorter than this GPU can achieve: part of the work was done "
           "outside the measurement, or not at all.",
    "T07": "The kernel is slower than the threshold of this case.",
    "Q01": "",  # the observation is complete
    "U02": "Tests and package disagree: one of them violates the contract.",
    "U01": "A test suite is only as good as the defects it detects.",
}

# Other meanings of these codes for values that host code returns.
_OF_ANSWERS = dict.fromkeys(
    ("T06", "T07"), "The returned value works, but the one that the contract asks for uses the "
                    "GPU better.")

_OWN_FORMS = "The grader extracts kernels from the text of the file and runs them itself; it " \
             "does not support this form, even if Triton compiles it."

# More specific meanings, by the data of a finding. A known mistake takes precedence only if it has
# a sign of its own.
CLOSER: tuple[tuple[str, Sign, str], ...] = (
    ("S01", {"kind": "on the CPU"},
     "Without `device=`, torch allocates on the CPU: allocate results and buffers on the device of "
     "the inputs."),
    ("M02", {"row": True}, "The store writes exactly one row past the end: a bound is too high by "
     "one (rows are numbered from zero), or the block has one more row and no mask."),
    ("M03", {"reason": "no launch"},
     "Only kernels store results: the function must launch one on every path to its `return`."),
    ("M03", {"reason": "no argument"},
     "A kernel can store only to its arguments: the launch that should store these elements is "
     "missing, or it is passed a different tensor."),
    ("M03", {"reason": "no store"},
     "Programs ran and stored, but none of their stores writes to this tensor."),
    ("M03", {"all_idle": True}, "The programs ran but stored nothing: there is no store, or its "
     "mask is always false."),
    ("M04", {"kind": "two lanes"},
     "Within one program, several elements of a block have the same address: their offsets "
     "coincide, or the mask is true for elements outside the tensor."),
    ("M09", {"kind": "no barrier"}, "The threads of a program are not synchronized, and a load may "
     "distribute elements to different threads than the store did, even with the same pointers: a "
     "thread can then load the old value."),
    ("N01", {"pattern": ["function", "input", "sign lost", "clamp"]},
     "Each value is in the right position, but was computed with a different formula."),
    ("X01", {"kind": "host copy"},
     "In this module host code may allocate and view tensors and check arguments, but not copy "
     "them; `.contiguous()` may copy."),
    ("L05", {"kind": ["constexpr function", "assembly", "of a GPU", "star parameters", "no kernel",
                      "not visible", "bound twice", "variable around"]}, _OWN_FORMS),
    ("L05", {"construct": ["ListComp", "SetComp", "DictComp", "GeneratorExp"]}, _OWN_FORMS),
    ("L01", {"kind": "grid number"},
     "The size of a grid is a whole number: `triton.cdiv` divides and rounds up."),
    ("L05", {"text": {"contains": "MatMult"}},
     "Kernels have no operator `@`: the product of two blocks is `tl.dot(a, b)`."),
    ("L05", {"text": {"contains": "make_shape_compatible"}},
     "Operators combine blocks element by element, so shapes have to match or broadcast. The "
     "product of two matrices is `tl.dot`."),
    ("L05", {"text": {"contains": "Unsupported ptr type"}},
     "Loads and stores take pointers: add offsets to a pointer argument of the kernel."),
    ("L05", {"text": {"contains": "arange's range must be a power of 2"}},
     "The number of elements of a block must be a power of two; choose a constexpr block size at "
     "the launch."),
    ("T02", {"requested": {"min": 0.0}},
     "A later iteration or another program may find the sector in a cache, so that memory moves it "
     "only once; but each access requests all of its sectors, and cache bandwidth is limited too."),
    ("T05", {"kind": ["too many threads", "too many blocks"]},
     "The launch options set the number of threads per program and of blocks per cluster, and "
     "CUDA has fixed limits for both."),
    ("T06", {"text": [{"contains": words}
                       for words in (" fit.", " fit as well", " fit at once")]},
     "The plan works, but leaves part of the GPU unused."),
    ("T06", {"threads": {"min": 1}},
     "The width of an access is at most a thread's share of the block: the number of elements "
     "times their size, divided by the number of threads."),
)


MOST_PLACES = 2  # that are named where no known mistake fails alike


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sorts findings by importance and drops repeated codes on the same line."""
    unique = {(f.code, f.line): f for f in reversed(list(findings))}
    order = [*MEANINGS]
    return tuple(sorted(unique.values(), key=lambda f: (order.index(f.code), f.line or 0)))


def explain(finding: Finding, mutants: Sequence[Mutant], todos: Mapping[int, int],
            failed: frozenset[str] = frozenset(),
            passed: frozenset[str] = frozenset(), marker: str = "TODO",
            file: str = "", text: str = "", entry: str = "",
            roots: Collection[str] = (), answered: bool = False,
            causes: Sequence[Cause] = (), refuted: Collection[str] = (),
            solutions: Mapping[str, str] = {}) -> Finding:
    """Fills in the usual cause of a finding, the place and the next step.


    No known mistake is matched if the code is not written yet, or if the failure occurs only on a
    GPU.

    Args:
        finding: code, data, the line if known, and a meaning if it has one of its own.
        mutants: the known mistakes of the module; one that fails the same way gives the meaning.
        todos: line -> number of the TODO or DECIDE that it belongs to in the learner's file.
        failed: names of all failed cases, to distinguish mistakes with the same code.
        passed: names of all passed cases; a case in neither set was not run.
        marker: the word of these comments.
        file: the file that the line is in, if the submission has several.
        text: the text of that file.
        entry: the function that the failing case calls.
        roots: the learner's functions that it calls, directly or through code of the suite.
        answered: the finding is about a value that host code returned.
        causes: the statements that decide the failure. A known mistake in another statement is
            ruled out, and the finding names their lines instead of the one where it was seen.
        refuted: the ids of known mistakes that give no meaning; they still say where to look.
        solutions: path -> text of the files that the causes were derived from.
    """
    closer = closer_meaning(finding)
    mutants = () if finding.means in (messages.NOT_WRITTEN, messages.ONLY_HERE) else mutants
    agreeing = [mutant for mutant in preceding(finding, mutants) if mutant.id not in refuted and (
        any(cause.may_be(mutant, solutions.get(cause.file, "")) for cause in causes) if causes else
        agrees(mutant, finding, todos, text))]
    likely = known_mistake(finding, agreeing, failed, passed)
    usual = _OF_ANSWERS if answered and finding.code in _OF_ANSWERS else MEANINGS
    cause = causes[0] if causes else Cause(0)
    elsewhere = bool(file) and bool(causes) and cause.file != file
    means = likely.meaning if likely else (
        finding.means or _of_cause(cause) or closer
        or _of_mask(finding, text) or (messages.UNUSED_AXIS if _has_unused_axis(finding) else "")
        or _by_line(finding, causes)
        or (messages.of_pattern(finding.data) if finding.code == "N01" else "")
        or (messages.MORE_OPERATIONS if finding.code == "T01" and value_of(
            finding.data, "kind") in ("operations", "slow products") else "")
        # The sentence of the compiler, or of Python, is more specific.
        or ("" if finding.code == "L05" else usual[finding.code]))
    seen_at = None if elsewhere else finding.line
    file = cause.file if elsewhere else file
    grid = lines_of_grid(text, None, entry) if _has_unused_axis(finding) and not causes else ()
    if causes:
        finding = replace(finding, line=causes[0].line or None,
                          also=causes[1].line if causes[1:] else None)
    if warps := line_of_warps(finding, text):
        finding = replace(finding, line=warps)
    signed = [mutant for mutant in mutants if mutant.codes[0] == finding.code
              and finding.has(mutant.sign)]
    possible = [m for m in signed if _possible(m, finding, failed, passed)]
    numbers = finding.todos or places_of(finding, todos, text, entry, likely, possible, signed,
                                         roots)
    if not likely and finding.code != "P01":
        numbers = numbers[:MOST_PLACES]
    if not numbers and not causes:
        finding = replace(finding, line=finding.line or line_of(finding, text, entry))
    if causes:
        own = tuple(dict.fromkeys(cause.todo for cause in causes if cause.todo))
        numbers = own or (likely.todos if likely else ())
    where = messages.where(
        finding.line, file, marker, numbers, seen_at=seen_at, also=finding.also,
        instead=grid[0] if grid else None, missing=bool(causes) and causes[0].missing)
    return replace(
        finding.within("sentence"), means=means, todos=numbers, file=file,
        where=where or (messages.in_file(file) if causes else ""),
        next_step=messages.next_step(finding.code, finding.data, numbers))


def _of_cause(cause: Cause) -> str:
    """Returns the meaning of the kind of mistake; empty where the kind has no name."""
    named = cause.kind or cause.unused or cause.own
    return messages.mistake(cause.kind, cause.part, cause.unused, cause.reads) if named else ""


def _of_mask(finding: Finding, text: str) -> str:
    """Explains an access outside a tensor by its mask; empty if unknown."""
    access = {"M01": "load", "M02": "store"}.get(finding.code)
    masked = has_mask(text, finding.line) if access and finding.line else None
    return messages.strayed(access, masked) if access and masked is not None else ""


def _has_unused_axis(finding: Finding) -> bool:
    """Whether programs overlap along an axis of the grid that the kernel does not read."""
    return finding.code == "M04" and value_of(finding.data, "axes") == "part"


def _by_line(finding: Finding, causes: Sequence[Cause]) -> str:
    """Meaning of a failure that a statement decides; empty where the finding says as much."""
    named = finding.line is not None and any(cause.line == finding.line for cause in causes)
    return messages.mistake("", causes[0].part) if causes and not (
        finding.code == "L05" and named) else ""


def preceding(finding: Finding, mutants: Sequence[Mutant]) -> Sequence[Mutant]:
    """The known mistakes that take precedence over the finding's own meaning."""
    return [one for one in mutants if one.sign] if closer_meaning(finding) else mutants


def closer_meaning(finding: Finding) -> str:
    """Returns the more specific meaning of a finding, or an empty string."""
    return next((text for code, sign, text in CLOSER
                 if code == finding.code and finding.has(sign)), "")


def known_mistake(finding: Finding, mutants: Sequence[Mutant], failed: frozenset[str],
                  passed: frozenset[str] = frozenset()) -> Mutant | None:
    """Returns the one mutant that fails the same way: code, signs and cases.

    All cases that the mutant fails have failed, and none that it passes. If it names cases that it
    passes, at least one of them was run, because a case graded alone cannot confirm a mistake.
    Of several mutants, the one with the most confirmed marks is returned; None if another has as
    many, or could reach as many with cases that have not run yet.
    """
    same = [mutant for mutant in mutants if finding.code == mutant.codes[0]
            and _possible(mutant, finding, failed, passed)]
    alike = [mutant for mutant in same if failed.issuperset(mutant.wrong)
             and not (mutant.right and passed.isdisjoint(mutant.right))]
    marks = [_marks(mutant, failed, passed) for mutant in alike]
    best = [mutant for mutant, count in zip(alike, marks, strict=True) if count == max(marks)]
    if len(best) != 1:
        return None
    judged = failed | passed
    rivals = [mutant for mutant in same if mutant is not best[0]
              and not judged.issuperset((*mutant.wrong, *mutant.right))
              and _marks(mutant, failed, passed) and _most_marks(mutant) >= _most_marks(best[0])]
    return None if rivals else best[0]


def _marks(mutant: Mutant, failed: frozenset[str], passed: frozenset[str]) -> int:
    """Counts the evidence for a possible mistake."""
    return (bool(mutant.sign) + len(failed.intersection(mutant.wrong))
            + len(passed.intersection(mutant.right)))


def _most_marks(mutant: Mutant) -> int:
    return bool(mutant.sign) + len(mutant.wrong) + len(mutant.right)


def _possible(mutant: Mutant, finding: Finding, failed: frozenset[str],
              passed: frozenset[str]) -> bool:
    """Whether no observation rules this mistake out."""
    return (finding.has(mutant.sign)
            and failed.isdisjoint(mutant.right) and passed.isdisjoint(mutant.wrong))
