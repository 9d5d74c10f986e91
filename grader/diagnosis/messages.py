"""The sentences of findings: all English about what was observed, made from the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grader.finding import Circumstance, Data, Excess, MemoryAccess, Unstored, WrongValues
from grader.text import program, program_number, sentence

# -- memory ----------------------------------------------------------------------------------------


def _memory_access(it: MemoryAccess) -> str:
    if it.kind == "two programs":
        return _two_programs(it)
    who, what = program(it.program, it.grid), f"{it.action} {_elements(it.count)}"
    tensor, first = f"`{it.tensor}`", f"(first index {it.index})"
    other = program(it.other, it.grid)
    match it.kind:
        case "past":
            words = f"{who} {what} past the end of {tensor} (first index {it.index} of " \
                    f"{it.n_elements})"
        case "before":
            words = f"{who} {what} before the start of {tensor} {first}"
        case "overflow":
            words = f"{who} {what} of {tensor} at index {it.index}, outside 0 to " \
                    f"{it.n_elements - 1}; an offset beyond 2147483647 does not fit 32 bits"
        case "wild":
            words = f"{who} {what} at an address that belongs to no argument"
        case "misaligned":
            words = f"{who} {what} of {tensor} at an address that is no multiple of the " \
                    "element's size"
        case "unwritten":
            words = f"{who} reads memory nobody wrote: {_elements(it.count)} of {tensor} {first}"
        case "modified":
            passed = f"Input `{it.argument}` was modified: line {it.passed_line} passes it as " \
                     f"{tensor}, and " if it.argument else f"input {tensor} was modified: "
            words = f"{passed}{who} stored {_elements(it.count)} into it {first}"
        case "two lanes":
            words = f"two lanes of {who} stored different values to element {it.index} of {tensor}"
        case "overwritten":
            words = f"{who} {what} of {tensor} that {other} loaded in the same launch {first}"
        case "unordered" | "early":
            words = f"{who} {what} of {tensor} that {other} changes by an atomic in the same " \
                    f"launch {first}"
        case "no barrier":
            line = "" if it.earlier_line is None else f" in line {it.earlier_line}"
            words = f"{who} {what} of {tensor} that it {it.earlier}{line} itself, without a " \
                    f"barrier in between {first}"
        case "race":
            words = f"{who} {what} of {tensor} that {other} stored in the same launch {first}"
    if it.others > 0:
        words += f"; {it.others} more {'program' if it.others == 1 else 'programs'} did so"
    return words + "; that is one row more than it has" * it.row


def _two_programs(it: MemoryAccess) -> str:
    one, other = (program_number(number, it.grid) for number in (it.other, it.program))
    count = it.others + 1
    more = f"; {count} programs stored over another program's elements" if count > 1 else ""
    named = " and ".join(map(str, it.asked))
    along = f"{'axis' if len(it.asked) == 1 else 'axes'} {named}"
    axes = ""
    if it.axes == "unused":
        axes = "; the kernel never asks for its program_id"
    elif it.axes == "flat":
        axes = f"; the kernel asks for program_id along {along}, where the grid is 1"
    elif it.axes == "part":
        sizes = it.grid if it.grid[2] > 1 else it.grid[:2]
        axes = f"; the grid is {sizes}, and the kernel asks for its place along {along} only"
    return (f"programs {one} and {other} both stored element {it.index} of `{it.tensor}`"
            f"{more}{axes}")


def _elements(count: int) -> str:
    return f"{count} element" if count == 1 else f"{count} elements"


def _unstored(it: Unstored) -> str:
    which = "the result" if it.number is None else f"`{it.name}`" if it.name else \
        f"result {it.number + 1}"
    where = str(it.first[0]) if len(it.first) == 1 else f"({', '.join(map(str, it.first))})"
    reason = {
        "": "",
        "no launch": "; the function launched no kernel",
        "no argument": "; no launch gets this tensor as an argument",
        "no store": "; programs stored to other tensors only",
        "idle programs": f"; {it.idle} of {it.programs} programs stored nothing",
        "none left": f"; {_each_program(it.programs)} stored others",
    }[it.reason]
    return (f"{it.count} of {it.total} elements of {which} were never stored by a kernel; the "
            f"first is index {where}{', and all behind it are missing too' * it.behind}{reason}")


def _each_program(count: int) -> str:
    return "the only program" if count == 1 else f"each of the {count} programs"


# -- values ----------------------------------------------------------------------------------------

PARTS = ("real", "imaginary")


def element(index: Sequence[int], of_parts: bool) -> str:
    *at, part = index if of_parts else (*index, 0)
    whole = f"[{', '.join(map(str, at))}]" if at else "the value"
    return f"the {PARTS[part]} part of {whole}" if of_parts else whole


def difference(it: WrongValues) -> str:
    place = element(it.index, it.of_parts)
    got, exact = _numbers(it.got, it.expected)
    elements = "real and imaginary parts" if it.of_parts else "elements"
    result = f" of `{it.result}`" if it.result else \
        "" if it.number is None else f" of result {it.number + 1}"
    many = f"{it.count} of {it.total} {elements}{result}"
    if it.kind == "drift":
        return f"the result leans away from the exact one by more than rounding explains ({many} " \
               f"are rounded otherwise; {place}: got {got}, exact {exact})"
    what = {
        "values": "wrong",
        "nonfinite": "NaN or infinite where the exact result is not, or the other way round",
        "tf32": "further off than float32 explains, and all are right for inputs that are rounded "
                "to TF32, with 10 bits of mantissa",
    }[it.kind]
    verb = "is" if it.count == 1 else "are"
    return f"{many} {verb} {what}; the first is {place}: got {got}, expected {exact}"


def _numbers(*values: float) -> list[str]:
    """Numbers with 7 digits, or with all of them where 7 do not tell one from the other."""
    for digits in (7, 17):
        words = [f"{v:.{digits}g}" if isinstance(v, float) else str(v) for v in values]
        if len(set(words)) > 1:
            break
    return words


def _wrong_values(it: WrongValues) -> str:
    words = (sentence(difference(it)), it.region.words, it.likeness.words)
    return " ".join(filter(None, words))


# -- costs -----------------------------------------------------------------------------------------


def in_launches(number: int) -> str:
    return f"{number or 'no'} launch{'' if number == 1 else 'es'}"


def _excess(it: Excess) -> str:
    kernel = f"`{it.kernel}`"
    match it.kind:
        case "bytes":
            allowed = f", and {it.limit:.2f} times are allowed" * (it.limit > 1)
            most = "" if it.line is None else \
                f" Line {it.line} {it.action}s most of them, {it.line_bytes:,} bytes of " \
                f"`{it.tensor}`."
            return f"The kernels moved {it.measured:,} bytes where {it.least:,} do: " \
                   f"{it.measured / it.least:.2f} times as many{allowed}.{most}"
        case "operations":
            return f"tl.dot computed {it.measured:,} operations where {it.least:,} do: " \
                   f"{it.measured / it.least:.2f} times as many, and {it.limit:.2f} times are " \
                   "allowed. What they are computed of was loaded as well."
        case "sectors":
            again = f" Other accesses use the rest: each sector is requested " \
                    f"{it.requested:.1f} times where {it.needed:.1f} would do." if it.reused else ""
            return f"{kernel} {it.action}s {100 * it.share:.0f} % of each 32-byte sector of " \
                   f"`{it.tensor}` that an access moves: the elements of an access lie apart in " \
                   f"memory.{again}"
        case "launches":
            return f"The function made {in_launches(it.measured)} where {it.limit} does."
        case "idle programs":
            return f"{it.measured} of {it.limit} programs stored nothing."
        case "idle sample":
            return f"{it.measured} of {it.limit} programs stored nothing, the first and the " \
                   f"last {int(it.limit) // 2} of a grid of {it.least}."
        case "programs":
            return f"{it.measured} programs ran where {it.limit} do."
        case _:
            return _compiled_excess(it)


def _compiled_excess(it: Excess) -> str:
    kernel = f"`{it.kernel}`"
    match it.kind:
        case "vector":
            share = f": {it.n_elements:,} elements of {it.itemsize} bytes, shared by " \
                    f"{it.threads} threads, are {it.measured // 8} bytes each" if it.divided else ""
            return f"A thread of {kernel} moves {it.measured} bits at a time where {it.limit} " \
                   f"do{share}."
        case "no access":
            return "No load or store of the compiled kernels moves a good part of the bytes; " \
                   f"threads are asked to move {it.limit} bits at a time."
        case "spills":
            return f"{kernel} spills {it.measured} bytes a thread to memory: its blocks do not " \
                   f"fit {it.registers} registers of {it.warps} warps."
        case "shared":
            return f"A program of {kernel} takes {it.measured:,} bytes of shared memory where " \
                   f"{it.limit:,} are allowed."
        case "stages" | "most stages":
            old = f"; Triton loads nothing ahead on the {it.target}" if it.target else ""
            bound = "at least" if it.kind == "stages" else "at most"
            return f"The pipeline of {kernel} is {it.measured} stages deep, in {it.shared:,} " \
                   f"bytes of shared memory, where {bound} {it.limit} are asked for{old}."
        case "tensor cores":
            old = f"; Triton knows none of the {it.target}" if it.target else ""
            return f"The matrix product does not use tensor cores{old}."
    return f"{kernel} loads tiles in pieces of {it.measured} bytes, each by a thread that " \
           f"computes its address; none of them is a bulk copy of the {it.target}."


# -- circumstances ---------------------------------------------------------------------------------


def _first_line(words: str, more: str) -> str:
    """More behind the sentence, which stands in the first line: code may be quoted below it."""
    first, *quoted = words.split("\n")
    return "\n".join([f"{first} {more}", *quoted])


def _others(count: int) -> str:
    return f" and {count} other{'' if count == 1 else 's'}" if count else ""


def _on_gpu(words: str, it: Mapping[str, Any]) -> str:
    differ = ""
    if it["passes"]:
        differ = " All of them pass on the processor." if it["others"] else \
            " It passes on the processor."
    return _first_line(words, f"Seen on the {it['gpu']} in the case '{it['case']}'"
                              f"{_others(it['others'])}.{differ}")


_CIRCUMSTANCES: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "sentence": lambda words, it: sentence(words),
    "file": lambda words, it: f"{it['name']}: {words}",
    "size": lambda words, it: f"At {it['size']}: {words}",
    "configuration": lambda words, it: f"With configuration {it['number']} of {it['count']}: "
                                       f"{words}",
    "trials": lambda words, it: f"In the first call, after {it['count']} trials of its autotuner "
                                f"on the caller's tensors: {words}",
    "timed": lambda words, it: f"{sentence(words)} Seen in a run that was timed.",
    "on the GPU": _on_gpu,
    "compiled": lambda words, it: _first_line(
        words, f"Seen in the case '{it['case']}'{_others(it['others'])}."),
    "contrast": lambda words, it: _first_line(words, it["text"]),
    "reason": lambda words, it: f"{sentence(words)} {it['text']}".strip(),
    "right in float32": lambda words, it: (
        f"{words} The same values are right in float32 and wrong in {it['dtype']}."),
    "right in few bits": lambda words, it: (
        f"{words} Where all factors are 1, -1 or 0, so that the same sums take few bits, they are "
        "right."),
}

_FAMILIES: dict[type, Callable[[Any], str]] = {
    MemoryAccess: _memory_access,
    Unstored: _unstored,
    WrongValues: _wrong_values,
    Excess: _excess,
}


def text(data: Data, circumstances: Sequence[Circumstance] = ()) -> str:
    """The data in words, with the circumstances around them."""
    words = data if isinstance(data, str) else _FAMILIES[type(data)](data)
    for one in circumstances:
        words = _CIRCUMSTANCES[one.kind](words, one.figures)
    return words
