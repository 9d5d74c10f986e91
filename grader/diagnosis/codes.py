"""Findings in words: what each code means, where to look, what to do next, and in which order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from grader.diagnosis import messages
from grader.diagnosis.todo_pointers import agrees, places_of
from grader.finding import Sign
from grader.report import Finding
from grader.submission.dataflow import has_mask
from grader.suite import Mutant

# code -> what it usually means, in words that hold for every module; nothing where none do. One
# failure is shown at a time, the first in the order of this table. Within memory, a store outside a
# tensor explains more than a load outside it, and overlapping stores explain missing ones.
MEANINGS = {
    "P02": "Python cannot import the file, so nothing of it was run.",
    "P01": "The exercise still has places to fill in.",
    "P03": "A function becomes a kernel only through the `@triton.jit` decorator.",
    "P04": "The grader calls the function by the name and parameters that the README gives.",
    "L01": "A grid is a tuple with one to three sizes, even where it has one dimension, and each "
           "axis takes whole numbers up to a limit of its own.",
    "L03": "The grid is larger than the work, so some programs have nothing to do.",
    "L05": "The Triton compiler refuses such code, so it would run on no GPU either.",
    "X01": "The result has to be computed by Triton kernels; the function may allocate, view and "
           "copy tensors and check its arguments.",
    "R04": "The code asked for more memory than a case of this size can need.",
    "R02": "A loop does not end, or does far more work than the case needs.",
    "R03": "The process that ran the code is gone, so there is no result to judge.",
    "R01": "The code ended with an exception where a result was asked for.",
    "M07": "The inputs belong to the caller and must stay as they are.",
    "M08": "The addresses are right for a contiguous tensor only; strides say where elements lie.",
    "M05": "An index of more than 31 bits was computed in 32-bit integers and wrapped around.",
    "M02": "Some indices of the store reach past the tensor, where no mask or a wrong one leaves "
           "them active.",
    "M01": "Some indices of the load reach past the tensor, where no mask or a wrong one leaves "
           "them active.",
    "M04": "Two programs own the same elements: the program id does not separate their indices.",
    "M03": "No program stores these elements: the grid is too small, or indices or a mask leave "
           "them out.",
    "M06": "The result depends on values that nobody defined: masked lanes without `other`, or "
           "memory that was never written.",
    "M09": "Programs run in no particular order, and the result depends on one.",
    "S01": "The result must have the shape, dtype and device that the contract gives.",
    "E01": "The contract asks for an exception here, before anything is launched.",
    "E02": "The exception has another type than the contract asks for.",
    "E03": "The message should name the argument, what was expected and what came.",
    "N03": "NaN and infinities in the input have to arrive where the contract says.",
    "N02": "An intermediate value left the range of its type although the result fits, or an "
           "operation had no result there, such as 0 / 0 or the root of a negative number.",
    "N04": "An intermediate was kept in a type with too few bits, most often an accumulator.",
    "N05": "The factors of a product kept 10 bits of mantissa, where float32 has 23. Float16 keeps "
           "as many, and so does TF32, in which products of float32 run unless full precision is "
           "asked for.",
    "N01": "The formula, an index or a mask is not what the module asks for.",
    "T05": "The blocks of a program and the stages of its pipeline have to fit the shared memory "
           "of one multiprocessor.",
    "T01": "Memory is read or written more often than the job needs.",
    "T02": "Memory moves in sectors of 32 bytes: neighbouring lanes should touch neighbouring "
           "elements.",
    "T03": "The work is spread over more launches or programs than the job needs.",
    "T04": "A program holds more values than its threads have registers: smaller blocks or more "
           "warps help.",
    "T06": "The compiler could not use what makes this fast: see which sizes, types and options "
           "it asks for.",
    "T08": "Faster than this GPU can be: part of the work was done before or after the clock ran, "
           "or not at all.",
    "T07": "The kernel takes longer than the threshold of this case allows.",
    "Q01": "",  # what was seen says all that holds for every answer
    "U02": "Tests and package disagree: one of the two departs from the contract.",
    "U01": "A test suite is as good as the mistakes that it notices.",
}

# The same of what host code answers, where a code says something else of it.
_OF_ANSWERS = dict.fromkeys(
    ("T06", "T07"), "The answer does no harm, and it is not the one that the contract asks for: "
                    "with that one, the GPU is used better.")

_OWN_FORMS = "The grader takes kernels from the text of the file and runs them itself; this is a " \
             "form that it does not follow, whether Triton compiles it or not."

# What the data of a finding tell beyond its code. A known mistake speaks in its place only where
# it has a sign of its own.
CLOSER: tuple[tuple[str, Sign, str], ...] = (
    ("S01", {"kind": "on the CPU"},
     "What is allocated lies where the call says, and not "
     "where the inputs are: result and buffers belong on the device of the inputs."),
    ("M02", {"row": True}, "Exactly one row behind the last is stored: a bound is one too high, as "
     "rows are numbered from zero, or the block has a row more and no bound keeps it back."),
    ("M03", {"reason": "no launch"},
     "Only kernels store results: the function has to launch one on every way to its `return`."),
    ("M03", {"reason": "no argument"},
     "A kernel stores to the tensors that it gets: the launch that should "
     "store these elements is missing, or it gets another tensor in the place of this one."),
    ("M03", {"reason": "no store"},
     "Programs ran and stored, and none of their stores goes to this tensor."),
    ("M03", {"all_idle": True}, "The programs ran and stored nothing at all: "
     "there is no store, or its mask leaves everything out."),
    ("M04", {"kind": "two lanes"},
     "Within one program, lanes of a tile arrive at the same element: "
     "their indices coincide, or the mask lets lanes through that own no element."),
    ("M09", {"kind": "no barrier"}, "The threads of a program run at their own pace, and a "
     "load may deal elements out to other threads than the store did, even by the same pointers: "
     "a thread then gets what stood there before."),
    ("N01", {"pattern": ["function", "input", "sign lost", "clamp"]},
     "Each element stands in its place and holds the value of another formula."),
    ("X01", {"kind": "host copy"},
     "In this module host code may allocate and view tensors and "
     "check its arguments; it copies none, and `.contiguous()` may be a copy."),
    ("L05", {"kind": ["constexpr function", "assembly", "of a GPU", "star parameters", "no kernel",
                      "not visible", "bound twice", "variable around"]}, _OWN_FORMS),
    ("L05", {"construct": ["ListComp", "SetComp", "DictComp", "GeneratorExp"]}, _OWN_FORMS),
    ("L05", {"text": {"contains": "Unsupported ptr type"}},
     "A load or a store takes addresses, and an address begins "
     "with a pointer that the kernel was given."),
    ("L05", {"text": {"contains": "arange's range must be a power of 2"}},
     "A block has a power of two of elements; a "
     "size that is a constexpr parameter is chosen where the kernel is launched."),
    ("T02", {"requested": {"min": 0.0}},
     "A sector that a later step of a loop or another "
     "program requests again may still lie in a cache, so that memory moves it once; but each "
     "access requests all of its sectors, and what the caches serve in a second is limited too."),
    ("T05", {"kind": ["too many threads", "too many blocks"]},
     "The options of a launch decide how many threads "
     "and blocks run together, and CUDA has fixed limits for both."),
    ("T06", {"text": [{"contains": words}
                       for words in (" fit.", " fit as well", " fit at once")]},
     "The plan can be carried out, and leaves a part of the GPU unused."),
    ("T06", {"threads": {"min": 1}},
     "No thread can move more at once than its share of a block: "
     "elements, their size and the number of threads decide how much that is."),
)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, the one to show first first; the same code on the same line only once."""
    unique = {(f.code, f.line): f for f in reversed(list(findings))}
    order = [*MEANINGS]
    return tuple(sorted(unique.values(), key=lambda f: (order.index(f.code), f.line or 0)))


def explain(finding: Finding, mutants: Sequence[Mutant], todos: Mapping[int, int],
            failed: frozenset[str] = frozenset(),
            passed: frozenset[str] = frozenset(), marker: str = "TODO",
            file: str = "", text: str = "", entry: str = "",
            roots: Collection[str] = (), answered: bool = False) -> Finding:
    """Fill in what a finding usually means, where to look and the next step.

    What is not written yet, or shows on a GPU alone, is no known mistake.

    Args:
        finding: code, what was seen, the line if there is one, and a meaning where it has one of
            its own.
        mutants: of the module; the known mistake that fails alike speaks for this one.
        todos: line -> number of the TODO or DECIDE that it belongs to in the learner's file.
        failed: names of all cases that failed, to tell mistakes with the same code apart.
        passed: names of all cases that passed; a case in neither was not run.
        marker: the word of these comments.
        file: the one that lines are of, where the submission has several.
        text: of that file.
        entry: the function that the failing case calls.
        roots: the learner's functions that it calls, by way of the suite's code too.
        answered: it is about what host code answers.
    """
    closer = closer_meaning(finding)
    mutants = () if finding.means in (messages.NOT_WRITTEN, messages.ONLY_HERE) else mutants
    agreeing = [mutant for mutant in mutants if mutant.sign] if closer else mutants
    agreeing = [mutant for mutant in agreeing if agrees(mutant, finding, todos, text)]
    likely = known_mistake(finding, agreeing, failed, passed)
    usual = _OF_ANSWERS if answered and finding.code in _OF_ANSWERS else MEANINGS
    means = likely.meaning if likely else (
        finding.means or closer or _of_mask(finding, text) or usual[finding.code])
    signed = [mutant for mutant in mutants if mutant.codes[0] == finding.code
              and finding.has(mutant.sign)]
    possible = [m for m in signed if _possible(m, finding, failed, passed)]
    numbers, further = (finding.todos, ()) if finding.todos else \
        places_of(finding, todos, text, entry, likely, possible, signed, roots)
    return replace(
        finding.within("sentence"), means=means, todos=(*numbers, *further),
        where=messages.where(finding.line, file, marker, numbers, further),
        next_step=messages.next_step(finding.code, finding.data, numbers))


def _of_mask(finding: Finding, text: str) -> str:
    """Meaning of an access outside a tensor, by whether its call has a mask; empty if unknown."""
    access = {"M01": "load", "M02": "store"}.get(finding.code)
    masked = has_mask(text, finding.line) if access and finding.line else None
    return messages.strayed(access, masked) if access and masked is not None else ""


def closer_meaning(finding: Finding) -> str:
    """What the words of a finding tell beyond its code; nothing where they do not."""
    return next((text for code, sign, text in CLOSER
                 if code == finding.code and finding.has(sign)), "")


def known_mistake(finding: Finding, mutants: Sequence[Mutant], failed: frozenset[str],
                  passed: frozenset[str] = frozenset()) -> Mutant | None:
    """The one mutant that fails alike: same code, same signs, the same telling cases.

    All cases that it gets wrong have failed, none that it gets right has, and where some are named,
    one of them was run: a case graded alone proves no mistake that other cases have to confirm.
    Of several, the one with most marks confirmed speaks, unless another has as many, or may have as
    many once cases are known that were not run yet.
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
    """What speaks for a mistake that is possible."""
    return (bool(mutant.sign) + len(failed.intersection(mutant.wrong))
            + len(passed.intersection(mutant.right)))


def _most_marks(mutant: Mutant) -> int:
    return bool(mutant.sign) + len(mutant.wrong) + len(mutant.right)


def _possible(mutant: Mutant, finding: Finding, failed: frozenset[str],
              passed: frozenset[str]) -> bool:
    """Whether nothing that was seen speaks against this mistake."""
    return (finding.has(mutant.sign)
            and failed.isdisjoint(mutant.right) and passed.isdisjoint(mutant.wrong))
