"""The sentences of findings: all English about what was observed, made from the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from string import Formatter
from typing import Any

from grader.finding import (
    Data,
    Fault,
    Figure,
    MemoryAccess,
    Unstored,
    WrongValues,
    value_of,
)
from grader.text import joined, program, program_number, ranges, sentence

_Form = str | Callable[..., str]  # of a sentence: with places for its figures, or a function


def _filled(form: _Form, figures: Mapping[str, Any]) -> str:
    return form.format(**figures) if isinstance(form, str) else form(**figures)


# -- memory ----------------------------------------------------------------------------------------

_ACCESSES = {
    "past": "{who} {accessed} past the end of {tensor} (first index {index} of {n_elements})",
    "before": "{who} {accessed} before the start of {tensor} {first}",
    "overflow": "{who} {accessed} of {tensor} at index {index}, outside 0 to {end}; an offset "
                "beyond 2147483647 does not fit 32 bits",
    "wild": "{who} {accessed} at an address that belongs to no argument",
    "misaligned": "{who} {accessed} of {tensor} at an address that is no multiple of the element's "
                  "size",
    "unwritten": "{who} reads memory nobody wrote: {elements} of {tensor} {first}",
    "modified": "{passed}{who} stored {elements} into it {first}",
    "two lanes": "two lanes of {who} stored different values to element {index} of {tensor}",
    "overwritten": "{who} {accessed} of {tensor} that {other} loaded in the same launch {first}",
    "unordered": "{who} {accessed} of {tensor} that {other} changes by an atomic in the same "
                 "launch {first}",
    "no barrier": "{who} {accessed} of {tensor} that it {earlier}{line} itself, without a barrier "
                  "in between {first}",
    "race": "{who} {accessed} of {tensor} that {other} stored in the same launch {first}",
}
_ACCESSES["early"] = _ACCESSES["unordered"]


def _memory_access(it: MemoryAccess) -> str:
    if it.kind == "two programs":
        return _two_programs(it)
    tensor, elements = f"`{it.tensor}`", f"{it.count} element{'' if it.count == 1 else 's'}"
    words = _ACCESSES[it.kind].format(
        who=program(it.program, it.grid), other=program(it.other, it.grid), tensor=tensor,
        elements=elements, accessed=f"{it.action} {elements}", index=it.index,
        n_elements=it.n_elements, end=it.n_elements - 1, first=f"(first index {it.index})",
        passed=f"Input `{it.argument}` was modified: line {it.passed_line} passes it as {tensor}, "
               "and " if it.argument else f"input {tensor} was modified: ", earlier=it.earlier,
        line="" if it.earlier_line is None else f" in line {it.earlier_line}")
    if it.others > 0:
        words += f"; {it.others} more {'program' if it.others == 1 else 'programs'} did so"
    return words + "; that is one row more than it has" * it.row


def _two_programs(it: MemoryAccess) -> str:
    one, other = (program_number(number, it.grid) for number in (it.other, it.program))
    count = it.others + 1
    more = f"; {count} programs stored over another program's elements" if count > 1 else ""
    along = f"{'axis' if len(it.asked) == 1 else 'axes'} {' and '.join(map(str, it.asked))}"
    sizes = it.grid if it.grid[2] > 1 else it.grid[:2]
    axes = {
        "": "",
        "unused": "; the kernel never asks for its program_id",
        "flat": f"; the kernel asks for program_id along {along}, where the grid is 1",
        "part": f"; the grid is {sizes}, and the kernel asks for its place along {along} only",
    }[it.axes]
    return (f"programs {one} and {other} both stored element {it.index} of `{it.tensor}`"
            f"{more}{axes}")


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
        "none left": "; the only program stored others" if it.programs == 1 else
                     f"; each of the {it.programs} programs stored others",
    }[it.reason]
    return (f"{it.count} of {it.total} elements of {which} were never stored by a kernel; the "
            f"first is index {where}{', and all behind it are missing too' * it.behind}{reason}")


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
    wrong = {
        "values": "wrong",
        "nonfinite": "NaN or infinite where the exact result is not, or the other way round",
        "tf32": "further off than float32 explains, and all are right for inputs that are rounded "
                "to TF32, with 10 bits of mantissa",
    }[it.kind]
    verb = "is" if it.count == 1 else "are"
    return f"{many} {verb} {wrong}; the first is {place}: got {got}, expected {exact}"


def _numbers(*values: float) -> list[str]:
    """Numbers with 7 digits, or with all of them where 7 do not tell one from the other."""
    for digits in (7, 17):
        words = [f"{v:.{digits}g}" if isinstance(v, float) else str(v) for v in values]
        if len(set(words)) > 1:
            break
    return words


def _wrong_values(it: WrongValues) -> str:
    words = [sentence(difference(it))]
    if it.region:
        words.append(region(it.region))
    if it.likeness:
        words.append(pattern(it.likeness))
    return " ".join(words)


_UNITS = {"element": "elements", "row": "rows", "column": "columns", "matrix": "matrices",
          "slice": "slices"}
_REGIONS = {
    "end": "only the {side} {unit}",
    "run": "only {span}",
    "run at end": "only the {side} {count:,} of {size:,} {units}",
    "listed": "only {units} {listed}",
    "but end": "all {units} but the {side}{several}",
    "but run": "all {units} but {span}",
    "last block": "only {units} from {first:,} on, where the last block of {block:,} is not full,",
    "program": "exactly program {low}'s {units} {first:,} to {last:,}",
    "programs": "exactly the {units} of programs {low} to {high}, {first:,} to {last:,},",
    "but program": "all {units} but program {low}'s {units} {first:,} to {last:,}",
    "but programs": "all {units} but the {units} of programs {low} to {high}, {first:,} to "
                    "{last:,}",
    "after program 0": "all {units} but the first {block:,}, which are program 0's,",
    "steps": "only {often} {unit}, beginning with {begin},",
    "but steps": "all {units} but {often} {unit}, beginning with {begin},",
    "block elements": "only the {units} in {lanes} of every block of {block:,}",
    "tile": "exactly one tile of {height} x {width}, {inside},",
    "box": "only {inside}",
    "diagonal": "only the diagonal",
    "off diagonal": "everything but the diagonal",
    "above diagonal": "only the triangle above the diagonal",
    "diagonal and above": "only the diagonal and the triangle above it",
    "below diagonal": "only the triangle below the diagonal",
    "diagonal and below": "only the diagonal and the triangle below it",
    "border": "only the border{wide}",
    "last rows and columns": "only {rows_there} and {columns_there}",
}
_SINGULAR = frozenset((
    "end", "steps", "tile", "diagonal", "off diagonal", "above diagonal", "diagonal and above",
    "below diagonal", "diagonal and below", "border"))


def region(it: Fault, verb: tuple[str, str] = ("is wrong", "are wrong")) -> str:
    """Where elements lie, as a sentence: "Only the last 3 of 1,000 columns are wrong."

    Args:
        verb: what the elements are or do, in the singular and in the plural.
    """
    figures: dict[str, Any] = it.figures
    if "part" in figures:
        where = "" if it.kind == "everywhere" else region(it.with_figures(part=None), verb)
        among = where and f" Of these, {where[:1].lower()}{where[1:]}"
        return f"Only {PARTS[figures['part']]} parts are wrong.{among}"
    words = _REGIONS[it.kind].format(**_region_words(**figures))
    if "axis" in figures:
        words += f" along dimension {figures['axis']}"
    if "flat" in figures:
        words = f"{words.rstrip(',')}, counted row by row,"
    if "every_matrix" in figures:
        words += " of every matrix"
    single = figures["first"] == figures["last"] if it.kind in ("run", "box") else \
        it.kind in _SINGULAR
    return f"{words[0].upper()}{words[1:]} {verb[not single]}."


def _region_words(**figures: Any) -> dict[str, Any]:
    """The figures of a region, and parts of its sentence that are made of them."""
    it, unit = figures, figures.get("unit", "element")
    words = it | {"unit": unit, "units": _UNITS[unit]}
    if "last" in it:
        words["span"] = inside = _span(unit, it["first"], it["last"])
        words["lanes"] = _span("lane", it["first"], it["last"])
    if "other_unit" in it:
        left, right = it["other_first"], it["other_last"]
        words |= {"inside": f"{inside} in {_span(it['other_unit'], left, right)}",
                  "height": it["last"] - it["first"] + 1, "width": right - left + 1}
    if "count" in it:
        words["several"] = "" if it["count"] == 1 else f" {it['count']:,}"
    if "indices" in it:
        words["listed"] = joined(f"{index:,}" for index in it["indices"])
    if "step" in it:
        start = it["start"]
        words["often"] = "every other" if it["step"] == 2 else f"every {_ordinal(it['step'])}"
        words["begin"] = f"{unit} {start:,}" if start else "the first"
    if "rows" in it:
        words |= {f"{unit}s_there": f"the last {unit}" if it[f"{unit}s"] == 1 else
                  f"the last {it[f'{unit}s']:,} {unit}s" for unit in ("row", "column")}
    words["wide"] = f", {it['width']} elements wide," if it.get("width", 1) > 1 else ""
    return words


def _span(unit: str, first: int, last: int) -> str:
    many = _UNITS.get(unit, f"{unit}s")
    return f"{unit} {first:,}" if first == last else f"{many} {first:,} to {last:,}"


def _ordinal(number: int) -> str:
    teens = 10 <= number % 100 <= 20
    return f"{number:,}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


_FUNCTIONS = {
    "log": "the logarithm of", "exp": "the exponential of", "sqrt": "the square root of",
    "square": "the square of", "reciprocal": "the reciprocal of",
    "reciprocal square": "the reciprocal of the square of",
}
_PATTERNS: dict[str, _Form] = {
    "nan": "{subject} is NaN",
    "value": "{subject} is {name}",
    "clamp": lambda name, side, **_:
        f"every {'negative number' if (side, name) == ('below', '0') else f'number {side} {name}'} "
        f"became {name}",
    "formula": "{subject} is {name}",
    "input": "{subject} is that of `{name}`",
    "function": lambda subject, function:
        f"{subject} is {_FUNCTIONS[function]} the expected one",
    "sign lost": "every negative number lost its sign",
    "factor": lambda subject, factor, whole, part:
        f"{subject} has the wrong sign" if factor == -1 else
        f"{subject} is {_times(factor, whole, part)} the expected one",
    "offset": lambda subject, amount:
        f"{subject} is {abs(amount):.4g} too {'large' if amount > 0 else 'small'}",
    "shift": lambda subject, count, unit, further:
        f"{subject} holds what belongs {count:,} {unit}{'' if count == 1 else 's'} "
        f"{'further on' if further else 'before it'}",
    "reverse": lambda order, **_: {
        "elements": "the elements stand in reverse order",
        "in rows": "the elements of each row stand in reverse order",
        "rows": "the rows stand in reverse order"}[order],
    "transpose": "the values stand in the order of the expected result's transpose",
    "rows": "the rows hold the values of other rows: row {row:,} those of row {other:,}",
    "factor by row": lambda low, high, **_:
        "within a row all elements are wrong by the same factor, which is " + _between(low, high),
    "offset by row": lambda low, high, **_:
        "within a row all elements are wrong by the same amount, which is " + _between(low, high),
    "precision": "none is off by more than one part in {parts:,}",
    "elsewhere": "the expected values are all there, in other places",
}


def pattern(it: Fault) -> str:
    """What wrong values look like, as a sentence, such as "Every element is NaN."."""
    figures: dict[str, Any] = dict(it.figures)
    figures["subject"] = "every element" if figures.pop("every", False) else \
        "each of these elements"
    words = _filled(_PATTERNS[it.kind], figures)
    return f"{words[:1].upper()}{words[1:]}."


def _times(factor: float, whole: int, part: int) -> str:
    if part:
        return "half" if part == 2 else f"1/{part:,} of"
    return f"{whole:,} times" if whole else f"{factor:.4g} times"


def _between(low: float, high: float) -> str:
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"between {low:.3g} and {high:.3g}"


def result_of(entry: str, names: Sequence[str]) -> str:
    """The name of a formula: the function's result for other arguments."""
    return f"what {entry}({', '.join(names)}) gives"


# -- faults ----------------------------------------------------------------------------------------


def in_launches(number: int) -> str:
    return f"{number or 'no'} launch{'' if number == 1 else 'es'}"


def _code(names: Iterable[Figure], between: str = " and ") -> str:
    return between.join(f"`{name}`" for name in names)


def _raised(exception: str, text: str = "") -> str:
    return f"{exception}: {text}".rstrip(": ")


def _memory_limit(n_bytes: float) -> str:
    return f" A submission may take {n_bytes / 1e9:.1f} GB of memory beside the inputs of its " \
           "module."


def _cause(hint: str, module: str, limit: float) -> str:
    """A sentence on how the sandbox caused an exception; empty where it did not."""
    return _memory_limit(limit) if limit else _HINTS[hint].format(module=module)


_HINTS = {
    "": "",
    "module": " Only the files of the exercise are graded: where `{module}` is a file of yours, "
              "put what it defines into the exercise's file.",
    "threads": " Threads and further processes are forbidden to host code in a grade.",
    "grid": " A kernel is launched with its grid: `kernel[grid](...)`.",
    "device": " The tensors of this grade are on the CPU; their device says so, and "
              "`torch.cuda.is_available()` that there is no GPU.",
}


def _blanks(count: int, total: int, todos: Sequence[int], lines: Sequence[int],
            more: bool) -> str:
    places = [f"TODO {ranges(todos)}{' and more' * more}"] if todos else []
    if lines:
        places.append(f"`...` in line {', '.join(map(str, lines))}")
    return f"{_left(count, total)}: {' and '.join(places)}."


def _blanks_in_files(count: int, total: int, files: Sequence[str], lines: Sequence[str]) -> str:
    places = (f"{file} line{'' if numbers.isdigit() else 's'} {numbers}"
              for file, numbers in zip(files, lines, strict=True))
    return f"{_left(count, total)}: `...` in {'; '.join(places)}."


def _steps(count: int, total: int, steps: int, right: Sequence[str], begun: bool, group: str,
           title: str, todos: Sequence[int], functions: Sequence[str]) -> str:
    places = f"TODO {ranges(todos)}" if todos else _code(functions)
    step = f"step {group} ({places}): {title}." if places else f"step {group}: {title}."
    if right:
        done = f"Step{'s' if len(right) > 1 else ''} {joined(right)} " \
               f"{'are' if len(right) > 1 else 'is'} right. Next: {step}"
    else:
        done = f"The exercise has {steps} steps. {'Go on' if begun else 'Begin'} with {step}"
    so_far = f" What is filled in of step {group} is right so far." if begun else ""
    return f"{done}{so_far} {_left(count, total)}."


def _left(count: int, total: int) -> str:
    if count <= total:
        return f"{count} of {total} blanks {'is' if count == 1 else 'are'} left"
    return "1 blank is left" if count == 1 else f"{count} blanks are left"


def _tensors(count: int, in_tuple: bool) -> str:
    return f"{count} tensor{'' if count == 1 else 's'} in a tuple" if in_tuple else "one tensor"


def _result(name: str, number: int | None) -> str:
    """One of several results in messages, by its name or its number from 0."""
    return f"Result `{name}`" if name else "The result" if number is None else \
        f"Result {number + 1}"


_ORIGINS = {
    "input": "an input",
    "made": "made by a recorded allocation; its values exist only in the executor",
    "copied": "made by copying inputs; its values are known here until a kernel gets it",
    "probe": "the result of a validation of inputs",
    "literal": "one Python number",
    "meta": "without memory",
    "": "made before the call (such as a buffer that was kept), in another thread or by NumPy",
}


_EVENTS = {"Alloc": "allocated", "Fill": "filled", "Move": "copied",
           "Launch": "given to a kernel"}
_STRANGE = {"meta": "has no memory (device 'meta')", "probe": "was made by torch",
            "literal": "was made by torch"}


def _other_work(detail: str) -> str:
    return "The function asks for other work when only the values of its arguments change: " \
           f"{detail}. The host may plan with shapes, strides and dtypes; values are read by " \
           "kernels."


def _compiling(kernels: Sequence[str], how: str) -> str:
    return f"Compiling {_code(kernels)} {how}."


def _variants(count: int, kernels: Sequence[str], calls: str, most: int, kernel: str = "",
              name: str = "", parts: Sequence[str] = (), n_parts: int = 0) -> str:
    words = f"{count} variants of {_code(kernels)} are compiled for {calls}; {most} are enough."
    if not parts:
        return words
    shown = ", ".join(parts) + (" and so on" if n_parts > len(parts) else "")
    return f"{words} While `{kernel}` is compiled, {n_parts} different things are known of " \
           f"`{name}`: {shown}."


def _refused(begin: str, text: str, quoted: str) -> str:
    words = sentence(begin + (text or "no reason is given"))
    return "\n".join([words, *quoted.splitlines()])


def _name(why: str, line: int, called: bool, code: str, nearest: str = "", instead: str = "",
          **figures: str) -> str:
    if nearest:
        nearest = f"; the nearest name is `{nearest}`"
    if instead:
        source = ", from `triton.language.extra`" * instead.startswith("libdevice.")
        instead = f": use `{instead}`{source}"
    reason = why.format(nearest=nearest, instead=instead, **figures)
    return f"Line {line} {'calls' if called else 'uses'} `{code}`, {reason}."


def _bytes(measured: int, limit: float, least: int, ratio: float, line: int | None = None,
           action: str = "", line_bytes: int = 0, tensor: str = "") -> str:
    allowed = f", and {limit:.2f} times are allowed" * (limit > 1)
    most = "" if line is None else \
        f" Line {line} {action}s most of them, {line_bytes:,} bytes of `{tensor}`."
    return f"The kernels moved {measured:,} bytes where {least:,} do: {ratio:.2f} " \
           f"times as many{allowed}.{most}"


def _sectors(kernel: str, action: str, share: float, tensor: str, requested: float | None = None,
             needed: float = 0) -> str:
    again = "" if requested is None else " Other accesses use the rest: each sector is requested " \
        f"{requested:.1f} times where {needed:.1f} would do."
    return f"`{kernel}` {action}s {100 * share:.0f} % of each 32-byte sector of `{tensor}` that " \
           f"an access moves: the elements of an access lie apart in memory.{again}"


def _stages(bound: str, kernel: str, measured: int, limit: float, shared: int, target: str) -> str:
    old = f"; Triton loads nothing ahead on the {target}" if target else ""
    return f"The pipeline of `{kernel}` is {measured} stages deep, in {shared:,} bytes of shared " \
           f"memory, where {bound} {limit} are asked for{old}."


def _too_slow(cause: str, most: str, gpu: str, verb: str, asked: str) -> str:
    return f"The launches {cause}: they reach at most {most} of the speed at which the {gpu} " \
           f"{verb}, and {asked} is asked for."


# Why a kernel cannot use a name.
_NAMES: dict[str, str] = {
    "reserved": "which a kernel cannot use",
    "attribute": "which a kernel cannot use{nearest}",
    "attribute assignment": "and a kernel cannot assign to attributes",
    "not constexpr": "a global that is not a tl.constexpr; kernels see only `name = "
                     "tl.constexpr(value)`",
    "constexpr function": "a `constexpr_function`; such functions run as Python while a kernel is "
                          "compiled",
    "host function": "a plain Python function; a kernel calls functions with `@triton.jit`",
    "kernel inside": "a kernel in `{around}`, which is not found under this name from here; "
                     "kernels call those at the top of the file",
    "class": "a class; kernels call those at the top of the file, not in a class",
    "class attribute": "an attribute of the class `{around}`, whose names a kernel in it does not "
                       "see",
    "variable around": "a variable of the function `{around}` around the kernel; its value is "
                       "known only when that function runs, so pass it to the launch as a "
                       "parameter",
    "undefined": "and `{name}` is not defined{nearest}",
    "not visible": "which a kernel cannot use; it sees its parameters, tl.constexpr globals, other "
                   "kernels and what the file imports of Triton",
    "of the host": "which Python runs on the host; a kernel is compiled and has only Triton's own "
                   "functions{instead}",
    "not imported": "but nothing imports the module `{module}`: a package has no attribute for a "
                    "module that was never imported",
    "not offered": "which Triton does not offer to kernels{nearest}",
    "of a GPU": "which tells something of the GPU that runs the kernel, and there is none",
    "assembly": "which puts assembly into the kernel; what is written in Triton is judged here",
}
CONSTRUCTS = {
    "Import": "an import", "ImportFrom": "an import", "Lambda": "a lambda",
    "ListComp": "a comprehension", "SetComp": "a comprehension", "DictComp": "a comprehension",
    "GeneratorExp": "a comprehension", "Try": "`try`", "TryStar": "`try`", "With": "`with`",
    "AsyncWith": "`with`", "Raise": "`raise`", "Global": "`global`", "Nonlocal": "`nonlocal`",
    "FunctionDef": "a function inside the kernel", "AsyncFunctionDef": "a function inside the "
    "kernel", "ClassDef": "a class", "Yield": "`yield`", "YieldFrom": "`yield`",
    "Await": "`async`", "AsyncFor": "`async`", "Delete": "`del`", "Break": "`break`",
    "Continue": "`continue`", "Match": "`match`", "Dict": "a dictionary or set",
    "Set": "a dictionary or set",
}

# Of cases: what those with a property are, and those without it.
_TRAITS = {
    "filled": ("with elements", "without elements"),
    "contiguous": ("with contiguous inputs",
                   "with views that have gaps or another order of strides"),
    "one program": ("that one program does", "that take several programs"),
    "whole blocks": ("whose elements fill whole blocks", "whose last block is not full"),
    "whole rows": ("whose rows fill whole blocks", "whose rows leave a part of a block over"),
    "power of two": ("whose last dimension is a power of two",
                     "whose last dimension is no power of two"),
    "finite": ("with finite numbers only", "with NaN or infinities"),
    "all negative": ("with negative numbers only", "with other numbers too"),
    "negative": ("with negative numbers", "without any"),
    "magnitude": ("with numbers as large as {:.3g}", "whose numbers stay within {:.3g}"),
    "width": ("whose last dimension is {:,} or more", "whose last dimension is {:,} or less"),
    "elements": ("whose number of elements is {:,} or more",
                 "whose number of elements is {:,} or less"),
}


def _contrast(trait: str, failed: int, passed: int, bad: Any = 0, good: Any = 0,
              inverse: bool = False, same_shapes: bool = False) -> str:
    """What failing cases have and passing ones lack; ``inverse``: what they lack."""
    if trait == "dtype":
        others = "the same shapes" if same_shapes else f"all {passed} others"
        return f"All {failed} cases in {joined(bad)} fail; {others} pass in {joined(good)}."
    if trait == "rank":
        one, other = (f"in {joined(map(str, side))} dimension{'' if side == (1,) else 's'}"
                      for side in (bad, good))
    else:
        one, other = (words.format(number) for words, number in zip(
            _TRAITS[trait][::-1 if inverse else 1], (bad, good), strict=True))
    if trait in ("width", "elements"):
        other = f"where it is{other.partition(' is')[2]}"
    return f"All {failed} cases {one} fail; all {passed} {other} pass."


_FAULTS: dict[str, _Form] = {
    "contrast": _contrast,

    # engine
    "stopped": "`{kernel}`: {text}",
    "assertion": lambda kernel, text:
        f"an assertion in `{kernel}` failed{f': {text}' if text else ''}",
    "not compiled": "`{kernel}` does not compile: {text}",
    "raised in kernel": "`{kernel}` raised {exception}: {text}",
    "carried type": lambda kernel, text, shape, new_shape: f"`{kernel}` does not compile: {text}",
    "too many programs": "`{kernel}` is launched with {count} programs; the grader runs at most "
                         "{most} of one launch",
    "modified by host": "an input was modified by a host operation of the function",
    "modified beside": "{count} elements beside those of an input that is changed in place were "
                       "stored too: its view leaves them out. The first lies {distance} elements "
                       "{side} the view's first",
    "compiler's assertion": "the compiler has {code}",
    "Triton's assertion": "Triton's `{code}` does not hold",
    "look-up failed": lambda types, text:
        f"the function that is called here has no version for {types}" if types else
        f"the compiler looked up {text} and found nothing",
    "of triton": "`triton.{name}` is for host code; in a kernel it is `tl.{name}`",
    "assigned elsewhere": "`{name}` is not defined here: what only one branch of an `if` on a "
                          "runtime value, or only the body of a loop, assigns ends with it; assign "
                          "it before",
    "programs wait": "The programs of `{kernel}` wait for each other, so a few of them cannot run "
                     "alone.",
    "long program": "A single program of `{kernel}` takes too long to follow at this size.",

    # kernels in the text of a file
    "extraction": "Taking the kernels from the file raised {exception}: {text}",
    "decorator": "Kernel `{kernel}` is decorated with `{code}`, which the grader does not know.",
    "nested expression": "An expression of a kernel is nested too deeply.",
    "annotation line": "The result's annotation of `{kernel}` starts on a line of its own.",
    "bound twice": lambda line, name, lines:
        f"Line {line} uses `{name}`, which lines {' and '.join(map(str, lines))} bind; the value "
        "of a kernel's global is taken from the text of the file, and has to be bound once, at its "
        "top: what is chosen at run time is passed to the launch.",
    "module value": "Line {line} uses the module `{code}` as a value, which a kernel cannot do.",
    "private name": "Kernel `{kernel}` uses the name `{name}`, which Python keeps for itself.",
    "walrus": "An annotation holds `:=`, which a kernel cannot use.",
    "default": "A parameter's default is `{code}`, and a kernel's defaults must be constants.",
    "star parameters": "Kernel `{kernel}` takes `*` or `**` parameters.",
    "item assignment": "Line {line} assigns to `{code}`; a block cannot be changed in place.",
    "construct": lambda line, construct:
        f"Line {line} uses {CONSTRUCTS[construct]}, which a kernel cannot use.",

    "joined comparison": lambda line, joined, others:
        f"`&` and `|` bind closer than comparisons do: line {line} compares `{joined}` with "
        f"{_code(others)}.",

    # files
    "no file": "There is no file {name}.",
    "link": "{name} is a link that leads out of the exercise's folder.",
    "size": "The files have {n_bytes:,} bytes together; a submission may have {most:,}.",
    "no text": "The file is not text in {encoding}.",
    "encoding": "The file declares the encoding `{encoding}`; a kernel file is text in UTF-8.",
    "NUL": "Line {line} holds a NUL byte, which no Python file may hold.",
    "syntax": lambda line, text, column, quoted:
        f"Python cannot parse line {line}{f', column {column}' if column else ''}: {text}.{quoted}",
    "nested file": "Python cannot parse the file: it is nested too deeply.",
    "unparsable": "Python cannot parse the file: {text}.",
    "uncompilable": lambda line, text, hint="", module="":
        sentence(f"Python cannot compile line {line}: {text}") + _cause(hint, module, 0),
    "import": lambda exception, text="", hint="", module="", limit=0:
        sentence(f"Importing the file raised {_raised(exception, text)}")
        + _cause(hint, module, limit),
    "blanks": _blanks,
    "blanks in files": _blanks_in_files,
    "steps": _steps,
    "beside the solution": "With code of the reference solution in the blanks that are left, that "
                           "code does not work with what was filled in.",
    "blank reached": "`{kernel}` reached a blank: `...` is still to be filled in.",
    "plain function": "`{name}` is launched with [grid] and is a plain Python function.",
    "no kernels": "No function of the file is decorated with `@triton.jit`, or given to "
                  "`triton.jit` by its name.",
    "no function": "The file defines no function `{name}`.",
    "signature": "`{name}` takes ({parameters}); the module asks for `{expected}`.",

    # launches
    "grid type": "The grid of `{kernel}` is {got}, of type {type}; a tuple of one to three numbers "
                 "is expected.",
    "grid length": "The grid of `{kernel}` has {count} numbers; it may have one to three.",
    "grid size": lambda kernel, got, axis, most, largest:
        f"The grid of `{kernel}` has {got} programs along axis {axis}; CUDA takes 0 to {most:,} "
        f"there{f', and up to {largest:,} along axis 0' if axis else ''}.",
    "grid number": "The grid of `{kernel}` has {got} along axis {axis}, of type {type}; it must be "
                   "an integer.",
    "too many launches": "Launch {count} in one call; at most {most} can be recorded.",
    "too many events": "More than {most} allocations, copies and launches were made in one call.",
    "unlike text": lambda kernel, line, own_line:
        f"The kernel `{kernel}` that is launched "
        + ("was made elsewhere than in the text of the file" if own_line is None else
           f"is that of line {own_line}")
        + f"; the file defines `{kernel}` in line {line}, and only that text is compiled and run.",
    "no parameter": lambda kernel, name, nearest:
        f"`{kernel}` has no parameter `{name}`, and Triton no launch option of that name."
        + (f" The nearest is `{nearest}`." if nearest else ""),
    "option type": "The launch option `{name}` is a {type}; here it can only be a number or a "
                   "word.",
    "option": "`{kernel}` is launched with the option `{name}`, which changes what the compiler "
              "makes of it; what is judged is the kernel.",
    "complex argument": "`{name}` of `{kernel}` gets a tensor of {dtype}; elements of a kernel are "
                        "real numbers.",
    "text argument": "`{name}` of `{kernel}` gets a text of {count:,} characters; at most {most:,} "
                     "are taken. Values come to a kernel in tensors.",
    "foreign argument": lambda name, kernel, origin:
        f"`{name}` of `{kernel}` gets a tensor that is {_ORIGINS[origin]}; kernels get the "
        "arguments and what is allocated in the call.",
    "descriptor": "The tensor descriptor `{name}` of `{kernel}` describes {shape} elements with "
                  "strides {strides}; their last is {n_bytes} bytes past the end of the tensor's "
                  "memory.",
    "no kernel": lambda kernel: sentence(
        f"`{kernel}` is launched, and the file defines no kernel of this name: kernels are "
        "functions with `@triton.jit`, or given to `triton.jit` by name"),
    "constexpr tensor": "The constexpr parameter `{name}` gets a tensor.",
    "negated": "A tensor is a lazily negated view, such as the imaginary part of a conjugated one; "
               "memory holds no such numbers.",
    "dimensions": "A tensor has {count} dimensions; at most {most} can be followed here.",
    "too many figures": "{task} reads figures of more than {most} compiled kernels.",

    # host code
    "host changes": "`{code}` changes the argument `{name}` in place, on the host.",
    "host values": "`{code}` makes a tensor from values of the host; values come from inputs and "
                   "kernels only.",
    "host check": "`{code}` looks at values that a kernel has yet to write; only inputs can be "
                  "checked on the host.",
    "host work": "`{code}` works on tensors in host code; kernels do the work here, the host "
                 "allocates, views, copies and launches.",
    "host read": "`{code}` reads values on the host that a kernel has yet to write; only inputs "
                 "may be read there.",
    "host reads": "`{code}` reads values of tensors on the host, {count:,} in this call so far; a "
                  "check of arguments may read {most}, and `x.isnan().any()` takes one.",
    "fill value": "`{code}` writes {value}; host code may fill a tensor with 0, 1, -1, inf and "
                  "-inf only.",
    "foreign fill": "`{code}` fills a tensor that was not made in this call.",
    "foreign copy": "`{code}` copies values that neither an input nor a kernel holds.",
    "host copy": "Host code copies a tensor of shape {shape}; in this module moving and casting is "
                 "what the kernels are for.",
    "written past torch": lambda name:
        f"Memory {f'of the argument `{name}`' if name else 'that was allocated'} was written on "
        "the host, past torch; only kernels write values.",
    "conjugated result": "The returned tensor is a conjugated view, which torch would compute when "
                         "it is read; a result holds what kernels have written.",
    "foreign result": lambda origin:
        f"The returned tensor {_STRANGE.get(origin, 'was made outside the call or outside torch')}"
        "; a result is a tensor that was allocated in the call and written by a kernel.",
    "on the CPU": lambda code, device:
        f"`{code}` is given " + (f"the device '{device}'" if device else "no device")
        + ": for inputs on a GPU its tensor would lie on the CPU, where no kernel reaches it.",
    "many floats": "The launches pass {count:,} different floats as arguments, for a result of "
                   "{elements:,} elements; at most {most:,} are taken. Values come to a kernel in "
                   "tensors, and the kernel computes with them.",
    "many words": "The launches pass {count:,} different integers, words and pieces of tensors as "
                  "arguments, for a result of {elements:,} elements; at most {most:,} are taken. "
                  "One launch for many elements needs a few sizes and strides.",
    "many moves": "The function copies or fills {count:,} pieces of tensors on the host, for a "
                  "result of {elements:,} elements; at most {most:,} are taken. Moving single "
                  "elements is the work of kernels.",
    "raised for others": lambda exception, text: sentence(
        f"For other values of the same shapes the function raised {_raised(exception, text)}"),
    "other kernel": lambda kernel, other: _other_work(
        f"`{kernel}` is launched for one, `{other}` for the other"),
    "other grid": lambda kernel, grid, other: _other_work(
        f"the grid of `{kernel}` is {grid} and {other}"),
    "other argument": lambda kernel, name, value, other: _other_work(
        f"`{name}` of `{kernel}` is {value} and {other}"),
    "other options": lambda kernel: _other_work(f"the options of `{kernel}` differ"),
    "other fill": lambda value, other: _other_work(
        f"a tensor is filled with {value:g} and {other:g}"),
    "other part": lambda event: _other_work(f"another part of a tensor is {_EVENTS[event]}"),
    "other bytes": lambda n_bytes, other: _other_work(f"{n_bytes} and {other} bytes are allocated"),
    "other event": lambda event, other: _other_work(
        f"a tensor is {_EVENTS[event]} for one and {_EVENTS[other]} for the other"),
    "other count": lambda count, other: _other_work(
        f"{count} allocations, copies and launches for one and {other} for the other"),
    "other result": lambda: _other_work("another tensor is returned"),
    "no launches": "One of the calls launches no kernel, of {calls}.",
    "variants": _variants,
    "not specialized": lambda kernel, name, count, calls:
        f"`{kernel}` names `{name}` in do_not_specialize, and `{name}` is a constexpr: each of its "
        f"values still makes a key of its own, {count} for {calls}, and Triton refuses to compile "
        "such a kernel.",

    # results, exceptions and answers
    "raised": lambda exception, text="", name="", hint="", module="", limit=0:
        sentence((f"`{name}`" if name else "The function") + f" raised {exception}"
                 + (f": {text}" if text else "")) + _cause(hint, module, limit),
    "in place": lambda names, got, type="":
        "The function works in place and returned "
        + {"nothing": "None", "tensor": "a tensor", "other": "something else"}.get(got, f"a {type}")
        + f", expected {f'{_code(names)}, changed' if names else 'None'}.",
    "strange dtype": "The function returned a tensor of {dtype}; no kernel writes such a one.",
    "no tensor": lambda type:
        f"The function returned a {type or 'something else'}, expected a torch.Tensor."
        + " A launch returns the compiled kernel; the result is the tensor that it wrote."
        * (type == "CompiledKernel"),
    "input returned": "The function returned its input, or a view of it; a new tensor is expected.",
    "results": lambda count, in_tuple, expected, expected_tuple:
        f"The function returned {_tensors(count, in_tuple)}, expected "
        f"{_tensors(expected, expected_tuple)}.",
    "shape": lambda shape, expected, result="", number=None:
        f"{_result(result, number)} has shape {shape}, expected {expected}.",
    "dtype": lambda dtype, expected, result="", number=None:
        f"{_result(result, number)} is {dtype}, expected {expected}.",
    "not contiguous": lambda strides, result="", number=None:
        f"{_result(result, number)} has strides {strides}; a contiguous tensor is expected.",
    "launches": lambda count, expected:
        f"The function made {in_launches(count)}; this case asks for {expected or 'none'}.",
    "no exception": "No exception was raised, expected {expected}.",
    "exception": lambda exception, text, expected: sentence(
        f"The function raised {exception} ({text}), expected {expected}"),
    "late exception": "The {expected} came after a kernel had been launched; it has to come first.",
    "message": lambda text, missing:
        f"The message “{text}” does not mention {' and '.join(missing)}.",
    "answer type": "`{name}` returned something that is not made of plain values: {type}.",
    "answer form": lambda name, answer, exception, text: sentence(
        f"`{name}` answered {answer}, which has another form than the contract gives "
        f"({exception}: {text})"),

    # processes
    "no end": lambda task, seconds: sentence(f"{task} did not end within {seconds:.0f} s"),
    "memory held": lambda task, n_bytes, seconds, limit: sentence(
        f"{task} held {n_bytes / 1e9:.1f} GB of memory after {seconds:.0f} s and went on."
        f"{_memory_limit(limit)}"),
    "memory taken": lambda task, n_bytes, most: sentence(
        f"{task} took {n_bytes / 1e9:.1f} GB of memory; the limit is {most / 1e9:.1f} GB"),
    "too much memory": lambda task: sentence(f"{task} used too much memory"),
    "ended": lambda task, text: sentence(f"the process ended while {task} ran: it {text}"),
    "not tried": "It was not tried: the trees before it took {seconds:.0f} s.",
    "no reply": lambda task, text: sentence(
        f"The process that ran {task} answered with something that is no reply: {text}"),
    "no account": lambda text, done="":
        f"The process {f'in which launches are {done}' if done else 'that ran the kernels'} "
        f"answered with something that is no account of them: {text}.",
    "refused recording": "The recorded launches cannot be {done}: {text}.",
    "kernel memory": "`{kernel}` needs more memory than there is.",
    "no memory": lambda text: f"There is not enough memory for {text or 'an allocation'}.",
    "no memory for shape": "There is not enough memory for a tensor of shape {shape}.",
    "endless recursion": "`{kernel}` calls itself without end.",

    # the compiler
    "compiling": lambda kernels, seconds: _compiling(
        kernels, f"did not end within {seconds:.0f} s, the limit for the launches of one call"),
    "compiling given up": lambda kernels, cpu_s, slowest, slowest_s: _compiling(
        kernels, f"was given up after {cpu_s:.0f} s of CPU time: one variant"
        f"{f' (with {slowest})' if slowest else ''} took {slowest_s:.0f} s. Values and memory "
        "accesses were judged without it"),
    "refused by Triton": lambda kernel, target, text, quoted: _refused(
        f"Triton does not compile `{kernel}` for the {target}: ", text, quoted),
    "refused": lambda kernel, target, text, quoted: _refused(
        f"`{kernel}` does not compile for the {target}: ", text, quoted),
    "refused by the assembler": lambda kernel, target, text, quoted: _refused(
        f"`{kernel}` does not compile for the {target}: the assembler refuses what Triton made of "
        "it: ", text, quoted),
    "too large": lambda kernel, target, text: sentence(
        f"`{kernel}` does not fit the {target}: {text}"),
    "too many threads": "`{kernel}` does not fit the {target}: `num_warps` asks for {count:,} "
                        "threads a program, and CUDA takes {most:,} at most, which are 32 warps.",
    "too many blocks": "`{kernel}` does not fit the {target}: `num_ctas` asks for clusters of "
                       "{count} thread blocks, and CUDA takes {most} at most.",

    # runs
    "other order": "The result changes when the programs of the same launch run in the opposite "
                   "order.",
    "strides": lambda strides, rank:
        "The values are right for a contiguous input and wrong for the same values with strides "
        f"{strides}.",
    "masked elements": lambda count, total, index, value, other:
        f"The result changes with the garbage in lanes that are masked off: {count} of {total} "
        f"elements differ, the first is {list(index)} with {value:.6g} and {other:.6g}.",
    "unwritten on GPU": "Two runs on the GPU gave different results, which change with the garbage "
                        "in memory that nobody wrote.",
    "order on GPU": "Two runs on the GPU gave different results: they depend on the order in which "
                    "programs happen to run.",
    "timed results": "A timed run gave other results than a run before it did, for the same "
                     "inputs.",
    "input on GPU": lambda number=None:
        f"On the GPU {'an input' if number is None else f'input {number + 1}'} holds other values "
        "after the call than before.",
    "overrun": lambda kernel, n_bytes, side, tensor, nearest, farthest: sentence(
        f"on the GPU `{kernel}` stored {n_bytes} bytes "
        f"{'past the end' if side == 'after' else 'before the start'} of "
        f"{f'`{tensor}`' if tensor else 'a tensor that it was not given'}, {nearest} "
        f"{'' if nearest == farthest else f'to {farthest} '}elements away from it"),
    "illegal access": lambda text: sentence(
        f"the GPU stopped a kernel that reached memory of no tensor ({text})"),
    "stopped by GPU": lambda text: sentence(f"the GPU stopped a kernel: {text}"),
    "impossible time": lambda ms, gpu, n_bytes=0, operations=0:
        f"{f'{ms:.3g} ms' if ms >= 1 else f'{ms * 1e3:.3g} us'} is less than a {gpu} needs for "
        + (f"{n_bytes:,} bytes" if n_bytes else f"{operations:,} operations")
        + ": the work was not done while the clock ran.",

    # what a case was made of
    "sparse tensor": "{tensor}, the first and the last elements are there",
    "tensor without values": "{tensor}, without values",
    "block of a descriptor": "descriptor of {tensor}, block {block}",
    "launch": lambda kernel, grid, arguments, line=0:
        f"{kernel}[{', '.join(map(str, grid))}]{f', line {line}' if line else ''}: "
        f"{'; '.join(arguments)}",
    "more launches": "and {count} more",
    # costs: what was measured, beside the limit of a case
    "bytes": _bytes,
    "operations": lambda measured, least, ratio, limit:
        f"tl.dot computed {measured:,} operations where {least:,} do: {ratio:.2f} times "
        f"as many, and {limit:.2f} times are allowed. What they are computed of was loaded as "
        "well.",
    "sectors": _sectors,
    "launches over limit": lambda measured, limit:
        f"The function made {in_launches(measured)} where {limit} does.",
    "idle programs": "{measured} of {programs} programs stored nothing.",
    "idle sample": lambda measured, sample, programs:
        f"{measured} of {sample} programs stored nothing, the first and the last {sample // 2} of "
        f"a grid of {programs}.",
    "programs": "{measured} programs ran where {limit} do.",
    "vector": lambda kernel, measured, limit, n_elements=0, itemsize=0, threads=0:
        f"A thread of `{kernel}` moves {measured} bits at a time where {limit} do"
        + (f": {n_elements:,} elements of {itemsize} bytes, shared by {threads} threads, are "
           f"{measured // 8} bytes each." if threads else "."),
    "no access": "No load or store of the compiled kernels moves a good part of the bytes; threads "
                 "are asked to move {limit} bits at a time.",
    "spills": "`{kernel}` spills {measured} bytes a thread to memory: its blocks do not fit "
              "{registers} registers of {warps} warps.",
    "shared": "A program of `{kernel}` takes {measured:,} bytes of shared memory where {limit:,} "
              "are allowed.",
    "stages": lambda **figures: _stages("at least", **figures),
    "most stages": lambda **figures: _stages("at most", **figures),
    "tensor cores": lambda target:
        "The matrix product does not use tensor cores"
        + (f"; Triton knows none of the {target}." if target else "."),
    "pieces": "`{kernel}` loads tiles in pieces of {measured} bytes, each by a thread that "
              "computes its address; none of them is a bulk copy of the {target}.",
    "slow traffic": lambda n_bytes, least, **more: _too_slow(
        f"move at least {n_bytes:,} bytes between memory and caches where {least:,} do", **more),
    "slow products": lambda operations, ms, **more: _too_slow(
        f"compute {operations:,} operations of tl.dot, which take at least {ms:.3g} ms on the "
        "units that they use", **more),
}


def words(kind: str, **figures: Figure) -> str:
    """The sentence of a fault of this kind."""
    return _fault(Fault(kind, figures))


def _fault(it: Fault) -> str:
    figures: dict[str, Any] = it.figures
    if it.kind in _NAMES:
        return _name(_NAMES[it.kind], **figures)
    return _filled(_FAULTS[it.kind], figures)


# -- performance defects ---------------------------------------------------------------------------

_POOR = "{n_bytes:,} bytes of `{tensor}` are {done} in {sectors:,} sectors of 32 bytes: " \
        "{used:.0%} of what moves is used"
# By name: what was observed, and what to try.
_DEFECTS: dict[str, tuple[_Form, _Form]] = {
    "launch-bound": (
        lambda launches, begin, work:
            f"{'the launch takes' if launches == 1 else f'{launches} launches take'} about "
            f"{begin:.1f} µs to begin, and {'its' if launches == 1 else 'their'} work "
            f"{work:.1f} µs",
        lambda launches, **_: "Do the work in one launch." if launches > 1 else
            "A launch costs more than this work: give it more, or record several into a CUDA "
            "graph."),
    "too few programs": (
        lambda programs, multiprocessors:
            f"{programs} program{'s' * (programs > 1)} for {multiprocessors} multiprocessors: the "
            "rest of the GPU has nothing to do",
        "Cut the work into more programs, also along the axis that is reduced."),
    "wave tail": (
        "{programs} programs on {multiprocessors} multiprocessors need {turns} turns, and in the "
        "last one {last:.0%} of them work",
        "Choose tiles so that programs are a multiple of the multiprocessors or just under it, "
        "split K, or let each program take several tiles."),
    "tiny programs": (
        "{programs:,} programs move {n_bytes:,.0f} bytes each: starting them takes {times:.1f} "
        "times as long as the memory needs",
        "Give each program more: a larger block, or several rows."),
    "idle lanes": (
        lambda threads, elements:
            f"{threads} threads share {elements:.0f} element{'s' * (elements >= 1.5)} at a time: "
            "most of them have none",
        "Use fewer warps (num_warps), or a larger block."),
    "contended atomics": (
        "{operations:,} atomic operations meet on one element, one after the other: about "
        "{ms:.2f} ms",
        "Add up in the program first, so that one operation stands for many, or spread them over "
        "several elements and add those in a second step."),
    "unfused launches": (
        "{launches} launches hand {n_bytes:,} bytes to one another through memory",
        "Do these steps in one kernel: what one step makes stays in registers for the next."),
    "uncoalesced access": (
        _POOR,
        "Neighbouring lanes go wherever the indices say; sort the indices, or fetch whole rows for "
        "each."),
    "strided access": (
        _POOR,
        "Let neighbouring lanes take neighbouring elements in memory; where rows meet columns, "
        "move a tile and transpose it in the program."),
    "data read again": (
        lambda n_bytes, needed, tensor, lines:
            f"{n_bytes:,} bytes or more come from memory, where {needed:,} would do: `{tensor}` is "
            f"read{f' at {lines} lines,' if lines > 1 else ''} again after it has left the caches",
        "Keep what was read in registers, or do the work in one pass, as with a running maximum "
        "and sum."),
    "register spills": (
        "`{kernel}` keeps {n_bytes} bytes of each thread in memory, since its values do not fit "
        "{registers} registers with {warps} warps",
        "Spread a block over more warps (num_warps), or make it smaller and loop."),
    "no tensor cores": (
        "tl.dot is computed by ordinary multiply-adds, not by tensor cores",
        "Use fp16 or bf16 operands, or allow tf32 (input_precision) where its precision is "
        "enough."),
    "small tiles": (
        lambda reuse=None:
            "tl.dot is computed by mma.sync: tiles under 64 rows, or fewer than 4 warps, do not "
            "reach the fast tensor-core instructions of this GPU" if reuse is None else
            f"Each element that is loaded takes part in {reuse:.0f} multiplications; L2 cannot "
            "feed the tensor cores at this rate",
        "Use larger tiles, such as 128 x 128 with 4 or 8 warps."),
    "narrow async copies": (
        "An operand of tl.dot is copied to shared memory in pieces of {n_bytes} bytes "
        "({instructions} instructions) instead of 16",
        "Store the operand so that neighbours along K lie side by side, or load it through a "
        "descriptor."),
    "no pipelining": (
        lambda in_flight=0.0, needed=0.0: "The loop is not pipelined: " + (
            f"each round of the loop waits for its loads, {in_flight / 1024:.0f} KiB for each "
            f"multiprocessor, where {needed / 1024:.0f} KiB have to be on their way" if needed else
            "tl.dot waits for its operands in every round of the loop"),
        lambda needed=0.0, **_: "Write the loop as tl.range(..., num_stages=3), take larger "
            "blocks, or launch more programs for each multiprocessor." if needed else
            "Give the launch num_stages=3 or more."),
    "scalar access": (
        "`{tensor}` is {done} {n_bytes} bytes at a time by each thread, where {possible} would do",
        "Start at an address that is a multiple of 16 bytes, and keep sizes and strides multiples "
        "of 16 elements; while memory is the bound it costs little."),
}


def defect(name: str, figures: Mapping[str, Any]) -> tuple[str, str]:
    """What was observed of a performance defect, and what to try."""
    observation, advice = _DEFECTS[name]
    return _filled(observation, figures), _filled(advice, figures)


# -- circumstances ---------------------------------------------------------------------------------


def _first_line(words: str, more: str) -> str:
    """More behind the sentence, which stands in the first line: code may be quoted below it."""
    first, *quoted = words.split("\n")
    return "\n".join([f"{first} {more}", *quoted])


def _others(count: int) -> str:
    return f" and {count} other{'' if count == 1 else 's'}" if count else ""


def _on_gpu(words: str, gpu: str, case: str, others: int, passes: bool) -> str:
    differ = f" {'All of them pass' if others else 'It passes'} on the processor." if passes else ""
    return _first_line(words, f"Seen on the {gpu} in the case '{case}'{_others(others)}.{differ}")


# Why a failure shows on a GPU alone.
_EFFECTS = {
    "": "",
    "other compiler": "The compiler for this GPU refuses what others compile.",
    "shared memory": "This GPU has less shared memory than the one that launches were compiled "
                     "for.",
    "TF32": "Tensor cores of the GPU round float32 operands to TF32.",
    "any order": "On a GPU programs run at the same time and in any order.",
    "flushed": "Instructions of the GPU flush numbers below the normal range to zero.",
    "fused": "The GPU fuses products with sums and approximates exp, division and square roots, "
             "which the processor rounds one by one.",
}
_CIRCUMSTANCES: dict[str, _Form] = {
    "sentence": lambda words: sentence(words),
    "file": "{name}: {words}",
    "size": lambda words, size, drawn="":
        f"At {size}{f' (the smallest found; drawn: {drawn})' if drawn else ''}: {words}",
    "configuration": "With configuration {number} of {count}: {words}",
    "trials": "In the first call, after {count} trials of its autotuner on the caller's tensors: "
              "{words}",
    "timed": lambda words: f"{sentence(words)} Seen in a run that was timed.",
    "on the GPU": _on_gpu,
    "compiled": lambda words, case, others: _first_line(
        words, f"Seen in the case '{case}'{_others(others)}."),
    "refused too": lambda words, refusal: f"{sentence(words)} {text(refusal)}",
    "crash": lambda words, kernels, target:
        f"Triton's compiler crashed on {_code(kernels, ' or ')}, for the {target}: {words} The "
        "launch would end any program in the same way.",
    "differing": lambda words, **it: f"{words} {region(it['region'], ('differs', 'differ'))}",
    "contrast": lambda words, contrast: _first_line(words, text(contrast)),
    "step": lambda words, group, title:
        f"Step {group} ({title}) was run with the reference solution in the blanks that are left. "
        f"{words}",
    "steps together": "The blanks that are left were taken from the reference solution. {words}",
    "reason": lambda words, effect: f"{sentence(words)} {_EFFECTS[effect]}".strip(),
    "right in float32": "{words} The same values are right in float32 and wrong in {dtype}.",
    "right in few bits": "{words} Where all factors are 1, -1 or 0, so that the same sums take few "
                         "bits, they are right.",
}

# -- what a finding means --------------------------------------------------------------------------

NOT_WRITTEN = "This part is not written yet."
ONLY_HERE = "The processor runs programs in turn and rounds every operation by itself; the " \
            "kernel depends on something that Triton leaves open."
NOTHING_TO_DO = "Nothing has to be computed for tensors without elements, so nothing is launched."
PLAIN_VALUES = "What host code answers has to be None, numbers, texts, or tuples, lists, dicts " \
               "and dataclasses of these."
TOO_MANY_OPERATIONS = \
    "The compiler writes out every operation of a thread: with large blocks on few warps, or " \
    "loops that are unrolled, there are too many of them. Larger `num_warps`, smaller blocks or " \
    "loops that are not unrolled make fewer."


def strayed(access: str, masked: bool) -> str:
    """The meaning of a load or store outside a tensor, by whether it has a mask."""
    why = "its mask is true for them" if masked else f"the {access} has no mask"
    return f"Some indices of the {access} reach past the tensor, and {why}."


def where(line: int | None, file: str, marker: str, todos: Sequence[int],
          further: Sequence[int]) -> str:
    """Where to look: a line of the file, places of the exercise, and other places."""
    places = [f"line {line}{f' of {file}' if file else ''}"] if line else []
    if todos:
        numbers = ranges(todos) if len(todos) > 3 else joined(map(str, todos), "or")
        places.append(f"{marker} {numbers}")
    if further:
        places.append(f"or else {ranges(further)}")
    words = ", ".join(places)
    return words[:1].upper() + words[1:]


_NEXT_STEPS = {
    "P02": "Repair it, then run `tritonlab grade` again.",
    "T02": "Let each access take at least 32 bytes that are contiguous, such as 8 columns of "
           "float32 in one step of a loop, then run `tritonlab grade` again.",
    "T07": "`tritonlab inspect` tells what each line moves, and which defects it knows.",
}


def next_step(code: str, data: Data, todos: Sequence[int]) -> str:
    """What to do about a finding that has these places."""
    if code == "M09" and value_of(data, "kind") == "no barrier":
        return "Keep the value in a variable instead of loading it, or let all threads wait " \
               "between store and load: `tl.debug_barrier()`."
    if code == "P01":
        return f"Fill in TODO {todos[0]} first; `tritonlab hint --todo {todos[0]}` helps." \
            if todos else "Replace each `...`, then run `tritonlab grade` again."
    if todos and code != "P02":
        return f"`tritonlab hint --todo {todos[0]}` leads on."
    return _NEXT_STEPS.get(code, "Change it, then run `tritonlab grade` again.")


# -- what a case was made of -----------------------------------------------------------------------


def tensor(dtype: str, shape: Sequence[int], stride: Sequence[int], offset: int) -> str:
    size = " x ".join(f"{side:,}" for side in shape) or "a single number"
    many = "s" if len(stride) > 1 else ""
    strides = f", stride{many} {', '.join(f'{step:,}' for step in stride)}" if len(stride) else ""
    begin = f", from element {offset:,} of its memory on" if offset else ""
    return f"{dtype}, {size}{strides}{begin}"


_FAMILIES: dict[type, Callable[[Any], str]] = {
    MemoryAccess: _memory_access,
    Unstored: _unstored,
    WrongValues: _wrong_values,
    Fault: _fault,
}


def fields() -> set[str]:
    """The names of all fields and figures that a sign can ask for."""
    names = {"text", "circumstance", "kind"}.union(*map(dir, _FAMILIES))
    for form in (*_FAULTS.values(), *_NAMES.values(), _name):
        names.update(filter(None, (field for _, field, _, _ in Formatter().parse(form)))
                     if isinstance(form, str) else signature(form).parameters)
    return names


def text(data: Data, circumstances: Sequence[Fault] = ()) -> str:
    """The data in words, with the circumstances around them."""
    words = data if isinstance(data, str) else _FAMILIES[type(data)](data)
    for one in circumstances:
        words = _filled(_CIRCUMSTANCES[one.kind], {"words": words, **one.figures})
    return words
