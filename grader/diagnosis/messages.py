"""Renders findings as English sentences."""

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

SCATTERED = 0.9  # of the characters of a map
EVERYWHERE = 0.98  # of all elements; as many right ones may be right by chance

_Form = str | Callable[..., str]  # a format string, or a function that takes the figures


def _filled(form: _Form, figures: Mapping[str, Any]) -> str:
    return form.format(**figures) if isinstance(form, str) else form(**figures)


# -- memory ----------------------------------------------------------------------------------------

_ACCESSES = {
    "past": "{who} {accessed} past the end of {tensor} (first index {index}, size {n_elements})",
    "before": "{who} {accessed} before the start of {tensor} {first}",
    "overflow": "{who} {accessed} of {tensor} at index {index}, outside the valid range 0 to "
                "{end}; an offset above 2147483647 does not fit in 32 bits",
    "wild": "{who} {accessed} at an address outside every tensor argument",
    "misaligned": "{who} {accessed} of {tensor} at a misaligned address (not a multiple of the "
                  "element size)",
    "unwritten": "{who} loaded uninitialized memory: {elements} of {tensor} {first}",
    "modified": "{passed}{who} stored {elements} to it {first}",
    "two lanes": "two elements of a block in {who} stored different values to element {index} of "
                 "{tensor}",
    "overwritten": "{who} {accessed} of {tensor} that {other} loaded in the same launch {first}",
    "unordered": "{who} {accessed} of {tensor} that {other} updated with an atomic in the same "
                 "launch {first}",
    "no barrier": "{who} {accessed} of {tensor} that it {earlier}{line} itself, with no barrier "
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
        line="" if it.earlier_line is None else f" on line {it.earlier_line}")
    if it.others > 0:
        words += f"; {it.others} more {'program' if it.others == 1 else 'programs'} did the same"
    return words + "; that is exactly one row past the end" * it.row


def _two_programs(it: MemoryAccess) -> str:
    one, other = (program_number(number, it.grid) for number in (it.other, it.program))
    count = it.others + 1
    more = f"; {count} programs overwrote another program's elements" if count > 1 else ""
    along = f"{'axis' if len(it.asked) == 1 else 'axes'} {' and '.join(map(str, it.asked))}"
    sizes = it.grid if it.grid[2] > 1 else it.grid[:2]
    axes = {
        "": "",
        "unused": "; the kernel never calls tl.program_id",
        "flat": f"; the kernel reads tl.program_id along {along} only, where the grid size is 1",
        "part": f"; the grid is {sizes}, and the kernel reads tl.program_id along {along} only",
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
        "no argument": "; this tensor is not an argument of any launch",
        "no store": "; programs stored to other tensors only",
        "idle programs": f"; {it.idle} of {it.programs} programs stored nothing",
        "none left": "; the only program stored other elements" if it.programs == 1 else
                     f"; each of the {it.programs} programs stored other elements",
    }[it.reason]
    place = f", all from index {where} on" if it.behind else f"; the first is index {where}"
    return f"{it.count} of {it.total} elements of {which} were never stored by a kernel" \
           f"{place}{reason}"


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
        return f"the result is biased by more than rounding explains ({many} are rounded " \
               f"differently; {place}: got {got}, exact {exact})"
    wrong = {
        "values": "wrong",
        "nonfinite": "NaN or infinite where the exact result is finite, or the reverse",
        "tf32": "less accurate than float32 allows, and correct for inputs rounded to TF32 "
                "(10 mantissa bits)",
    }[it.kind]
    verb = "is" if it.count == 1 else "are"
    return f"{many} {verb} {wrong}; the first is {place}: got {got}, expected {exact}"


def _numbers(*values: float) -> list[str]:
    """Formats numbers with 7 digits, or with 17 if they look the same with 7."""
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
    if not it.map or _is_scattered(it) or _is_everywhere(it):
        return " ".join(words)
    return "\n".join([" ".join(words), *it.map, _legend(it.scale)])


def _is_scattered(it: WrongValues) -> bool:
    """Whether nearly every character of the map stands for right and wrong elements."""
    drawn = "".join(it.map)
    return drawn.count("+") > SCATTERED * len(drawn)


def _is_everywhere(it: WrongValues) -> bool:
    """Whether so few elements are right that they may be so by chance."""
    return it.count > max(1, EVERYWHERE * it.total)


def _legend(scale: Sequence[int]) -> str:
    block = f"{scale[0]:,} x {scale[1]:,} elements" if len(scale) > 1 else \
        f"{scale[0]:,} elements" if scale[0] > 1 else "an element"
    block = "an element" if set(scale) == {1} else block
    both = "" if set(scale) == {1} else ", `+` both"
    return f"Each character is {block}: `.` right, `x` wrong{both}."


_UNITS = {"element": "elements", "row": "rows", "column": "columns", "matrix": "matrices",
          "slice": "slices"}
_REGIONS = {
    "end": "only the {side} {unit}",
    "run": "only {span}",
    "run at end": "only the {side} {count:,} of {size:,} {units}",
    "listed": "only {units} {listed}",
    "but end": "all {units} except the {side}{several}",
    "but run": "all {units} except {span}",
    "last block": "only {units} {first:,} and up, in the partial last block of {block:,},",
    "program": "exactly program {low}'s {units}, {first:,} to {last:,},",
    "programs": "exactly the {units} of programs {low} to {high}, {first:,} to {last:,},",
    "but program": "all {units} except program {low}'s, {first:,} to {last:,},",
    "but programs": "all {units} except those of programs {low} to {high}, {first:,} to {last:,},",
    "after program 0": "all {units} except the first {block:,}, which belong to program 0,",
    "steps": "only {often} {unit}, starting with {begin},",
    "but steps": "all {units} except {often} one, starting with {begin},",
    "block elements": "only the {units} in {lanes} of every block of {block:,}",
    "tile": "exactly one tile of {height} x {width}, {inside},",
    "box": "only {inside}",
    "diagonal": "only the diagonal",
    "off diagonal": "everything except the diagonal",
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
    """Describes which elements are affected: "Only the last 3 of 1,000 columns are wrong."

    Args:
        verb: the predicate, in the singular and in the plural.
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
        words = f"{words.rstrip(',')}, counted in row-major order,"
    if "every_matrix" in figures:
        words += " of every matrix"
    single = figures["first"] == figures["last"] if it.kind in ("run", "box") else \
        it.kind in _SINGULAR
    return f"{words[0].upper()}{words[1:]} {verb[not single]}."


def _region_words(**figures: Any) -> dict[str, Any]:
    """Adds the phrases that a region's sentence derives from its figures."""
    it, unit = figures, figures.get("unit", "element")
    words = it | {"unit": unit, "units": _UNITS[unit]}
    if "last" in it:
        words["span"] = inside = _span(unit, it["first"], it["last"])
        words["lanes"] = _span("position", it["first"], it["last"])
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
        f"every {'negative value' if (side, name) == ('below', '0') else f'value {side} {name}'} "
        f"became {name}",
    "formula": "{subject} is {name}",
    "input": "{subject} equals `{name}`",
    "function": lambda subject, function:
        f"{subject} is {_FUNCTIONS[function]} the expected value",
    "sign lost": "every negative value lost its sign",
    "factor": lambda subject, factor, whole, part:
        f"{subject} has the wrong sign" if factor == -1 else
        f"{subject} is {_times(factor, whole, part)} the expected value",
    "offset": lambda subject, amount:
        f"{subject} is {abs(amount):.4g} too {'large' if amount > 0 else 'small'}",
    "shift": lambda subject, count, unit, further:
        f"{subject} holds the value expected {count:,} {unit}{'' if count == 1 else 's'} "
        f"{'later' if further else 'earlier'}",
    "reverse": lambda order, **_: {
        "elements": "the elements are in reverse order",
        "in rows": "the elements of each row are in reverse order",
        "rows": "the rows are in reverse order"}[order],
    "transpose": "the values are in the order of the transposed result",
    "rows": "the rows hold the values of other rows: row {row:,} holds those of row {other:,}",
    "factor by row": lambda low, high, **_:
        "all elements of a row are wrong by the same factor, " + _between(low, high),
    "offset by row": lambda low, high, **_:
        "all elements of a row are wrong by the same amount, " + _between(low, high),
    "precision": "no element is off by more than one part in {parts:,}",
    "elsewhere": "all expected values are present, but in other positions",
}


def pattern(it: Fault) -> str:
    """Describes what wrong values look like, such as "Every element is NaN."."""
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
    """Names a formula: the function's result for other arguments."""
    return f"what {entry}({', '.join(names)}) gives"


# -- faults ----------------------------------------------------------------------------------------


def in_launches(number: int) -> str:
    return f"{number or 'no'} launch{'' if number == 1 else 'es'}"


def _code(names: Iterable[Figure], between: str = " and ") -> str:
    return between.join(f"`{name}`" for name in names)


def _raised(exception: str, text: str = "") -> str:
    return f"{exception}: {text}".rstrip(": ")


def _memory_limit(n_bytes: float) -> str:
    return f" A submission may use {n_bytes / 1e9:.1f} GB of memory in addition to the inputs of " \
           "its module."


def _cause(hint: str, module: str, limit: float) -> str:
    """Explains an exception; empty if nothing is known."""
    return _memory_limit(limit) if limit else _HINTS[hint].format(module=module)


_HINTS = {
    "": "",
    "module": " Only the files of the exercise are graded: if `{module}` is your own file, move "
              "its code into the exercise's file.",
    "libdevice": " It is in Triton: `from triton.language.extra import libdevice`.",
    "threads": " Host code must not start threads or processes during a grade.",
    "grid": " Launch a kernel with a grid: `kernel[grid](...)`.",
    "float": " `/` gives a float; sizes and indices need the whole number that `//` gives.",
    "device": " This grade runs with CPU tensors: `x.device` is 'cpu', and "
              "`torch.cuda.is_available()` returns False.",
}


def _blanks(count: int, total: int, todos: Sequence[int], lines: Sequence[int],
            more: bool) -> str:
    places = [f"TODO {ranges(todos)}{' and more' * more}"] if todos else []
    if lines:
        places.append(f"`...` on line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}")
    return f"{_left(count, total)}: {' and '.join(places)}."


def _blanks_in_files(count: int, total: int, files: Sequence[str], lines: Sequence[str]) -> str:
    places = (f"{file} line{'' if numbers.isdigit() else 's'} {numbers}"
              for file, numbers in zip(files, lines, strict=True))
    return f"{_left(count, total)}: `...` in {'; '.join(places)}."


def _steps(count: int, total: int, steps: int, right: Sequence[str], begun: bool, group: str,
           title: str, todos: Sequence[int], functions: Sequence[str]) -> str:
    places = f"TODO {ranges(todos)}" if todos else _code(
        name for name in functions if name.casefold() != title.casefold())
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
        blanks = "blank" if total == 1 else "blanks"
        return f"{count} of {total} {blanks} {'is' if count == 1 else 'are'} left"
    return "1 blank is left" if count == 1 else f"{count} blanks are left"


def _tensors(count: int, in_tuple: bool) -> str:
    return f"{count} tensor{'' if count == 1 else 's'} in a tuple" if in_tuple else "one tensor"


def _result(name: str, number: int | None) -> str:
    """Names one of several results, by its name or its number from 0."""
    return f"Result `{name}`" if name else "The result" if number is None else \
        f"Result {number + 1}"


_ORIGINS = {
    "input": "an input",
    "made": "allocated in the call; its values exist only while kernels run",
    "copied": "a copy of an input",
    "probe": "the result of a check of inputs",
    "literal": "a single Python number",
    "meta": "on the 'meta' device, without memory",
    "": "created before the call (such as a cached buffer), in another thread or by NumPy",
}


_EVENTS = {"Alloc": "allocated", "Fill": "filled", "Move": "copied",
           "Launch": "passed to a kernel"}
_STRANGE = {"meta": "has no memory (device 'meta')", "probe": "was computed by torch",
            "literal": "was computed by torch"}


def _other_work(detail: str) -> str:
    return "The function does different work when only the values of its arguments change: " \
           f"{detail}. Host code may depend on shapes, strides and dtypes; only kernels read " \
           "values."


def _compiling(kernels: Sequence[str], how: str) -> str:
    return f"Compiling {_code(kernels)} {how}."


def _variants(count: int, kernels: Sequence[str], calls: str, most: int, kernel: str = "",
              name: str = "", parts: Sequence[str] = (), n_parts: int = 0) -> str:
    words = f"{count} variants of {_code(kernels)} are compiled for {calls}; {most} are enough."
    if not parts:
        return words
    shown = ", ".join(parts) + (" and so on" if n_parts > len(parts) else "")
    return f"{words} `{kernel}` is specialized {n_parts} times on `{name}`: {shown}."


def _refused(begin: str, text: str, quoted: str) -> str:
    words = sentence(begin + (text or "the compiler gives no reason"))
    return "\n".join([words, *quoted.splitlines()])


def _name(why: str, line: int, called: bool, code: str, nearest: str = "", instead: str = "",
          **figures: str) -> str:
    if nearest:
        nearest = f"; the nearest name is `{nearest}`"
    if instead:
        source = " from `triton.language.extra`" * instead.startswith("libdevice.")
        instead = f": use `{instead}`{source}"
    reason = why.format(nearest=nearest, instead=instead, **figures)
    return f"Line {line} {'calls' if called else 'uses'} `{code}`, {reason}."


def _bytes(measured: int, limit: float, least: int, ratio: float, line: int | None = None,
           action: str = "", line_bytes: int = 0, tensor: str = "") -> str:
    allowed = f"; the limit is {limit:.2f}x" * (limit > 1)
    most = "" if line is None else \
        f" Line {line} {action}s most of them: {line_bytes:,} bytes of `{tensor}`."
    return f"The kernels moved {measured:,} bytes, {ratio:.2f}x the required {least:,}" \
           f"{allowed}.{most}"


def _sectors(kernel: str, action: str, share: float, tensor: str, requested: float | None = None,
             needed: float = 0) -> str:
    again = "" if requested is None else " Other accesses use the rest: each sector is requested " \
        f"{requested:.1f} times instead of {needed:.1f}."
    return f"`{kernel}` {action}s only {100 * share:.0f} % of each 32-byte sector of `{tensor}` " \
           f"that an access touches: the access is not coalesced.{again}"


def _requests(kernel: str, action: str, share: float, tensor: str, measured: float,
              needed: float) -> str:
    return f"Each instruction by which a warp of `{kernel}` {action}s elements of `{tensor}` " \
           f"touches {measured:.1f} sectors of 32 bytes where {needed:.1f} would hold them, and " \
           f"uses {100 * share:.0f} % of each: the threads of a warp access elements that are " \
           "far apart."


def _stages(bound: str, kernel: str, measured: int, limit: float, shared: int, target: str) -> str:
    old = f"; Triton does not prefetch on the {target}" if target else ""
    return f"The pipeline of `{kernel}` has {measured} stage{'' if measured == 1 else 's'} in " \
           f"{shared:,} bytes of shared memory; {bound} {limit} are required{old}."


def _too_slow(cause: str, most: str, gpu: str, verb: str, asked: str) -> str:
    return f"The launches {cause}: they reach at most {most} of the speed at which the {gpu} " \
           f"{verb}; {asked} is required."


# Reasons why a kernel cannot use a name.
_NAMES: dict[str, str] = {
    "reserved": "which a kernel cannot use",
    "attribute": "which a kernel cannot use{nearest}",
    "attribute assignment": "and a kernel cannot assign to attributes",
    "not constexpr": "a global that is not a tl.constexpr; a kernel can read a global only if it "
                     "is defined as `name = tl.constexpr(value)`",
    "constexpr function": "a `constexpr_function`, which runs as Python while the kernel is "
                          "compiled",
    "host function": "a plain Python function; a kernel can call only functions decorated with "
                     "`@triton.jit`",
    "kernel inside": "a kernel defined inside `{around}`, which is not visible here; a kernel can "
                     "call only kernels at the top level of the file",
    "class": "a class; a kernel can call only kernels at the top level of the file",
    "class attribute": "an attribute of the class `{around}`, which is not in the scope of its "
                       "methods",
    "variable around": "a variable of the enclosing function `{around}`; its value is known only "
                       "when that function runs, so pass it to the launch as an argument",
    "undefined": "and `{name}` is not defined{nearest}",
    "not visible": "which a kernel cannot use; it can use its parameters, tl.constexpr globals, "
                   "other kernels and names imported from Triton",
    "of the host": "which is Python host code; a kernel is compiled and can call only Triton "
                   "functions{instead}",
    "not imported": "but the module `{module}` is never imported; importing a package does not "
                    "import its submodules",
    "not offered": "which is not available in Triton kernels{nearest}{instead}",
    "of a GPU": "which queries the GPU that runs the kernel, and this grade runs without one",
    "assembly": "which inserts inline assembly; only code written in Triton is graded",
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

# Cases with a property, and cases without it.
_TRAITS = {
    "filled": ("with non-empty tensors", "with empty tensors"),
    "contiguous": ("with contiguous inputs", "with non-contiguous inputs"),
    "one program": ("with a single program", "with several programs"),
    "whole blocks": ("whose last block is full", "whose last block is partial"),
    "whole rows": ("whose rows fill whole blocks", "whose rows end in a partial block"),
    "power of two": ("whose last dimension is a power of two",
                     "whose last dimension is not a power of two"),
    "finite": ("with only finite values", "with NaN or infinities"),
    "all negative": ("with only negative values", "with other values too"),
    "negative": ("with negative values", "without negative values"),
    "magnitude": ("with values as large as {:.3g}", "with values up to {:.3g}"),
    "width": ("whose last dimension is {:,} or more", "whose last dimension is {:,} or less"),
    "elements": ("with {:,} or more elements", "with {:,} or fewer elements"),
}


def _contrast(trait: str, failed: int, passed: int, bad: Any = 0, good: Any = 0,
              inverse: bool = False, same_shapes: bool = False) -> str:
    """Contrasts failing cases with passing ones; ``inverse``: the passing ones have the trait."""
    if trait == "dtype":
        others = "the same shapes" if same_shapes else f"all {passed} cases"
        return f"All {failed} cases in {joined(bad)} fail; {others} in {joined(good)} pass."
    if trait == "rank":
        one, other = (f"with {joined(map(str, side), 'or')} dimension{'' if side == (1,) else 's'}"
                      for side in (bad, good))
    else:
        one, other = (words.format(number) for words, number in zip(
            _TRAITS[trait][::-1 if inverse else 1], (bad, good), strict=True))
    if trait == "width":
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
                         "{most} per launch",
    "modified by host": "a host operation of the function modified an input",
    "modified beside": "{count} elements outside the view of an input that is updated in place "
                       "were stored too. The first lies {distance} elements {side} the view's "
                       "first",
    "compiler's assertion": "the compiler failed with {code}",
    "Triton's assertion": "Triton's assertion `{code}` failed",
    "look-up failed": lambda types, text:
        f"the function called here is not implemented for {types}" if types else
        f"the compiler did not find {text}",
    "of triton": "`triton.{name}` is for host code; use `tl.{name}` in a kernel",
    "assigned elsewhere": "`{name}` is not defined here: a name that is assigned only in one "
                          "branch of an `if` on a runtime value, or only in the body of a loop, "
                          "does not exist after it; assign it before",
    "programs wait": "The programs of `{kernel}` wait for each other, so a sample of them cannot "
                     "run alone.",
    "unknown trip count": "The iterations of the loop on line {line} of `{kernel}` depend on "
                          "values that are unknown without running it, so its time cannot be "
                          "predicted.",
    "long program": "A single program of `{kernel}` takes too long to simulate at this size.",

    # kernels in the text of a file
    "extraction": "Extracting the kernels from the file raised {exception}: {text}",
    "decorator": "Kernel `{kernel}` is decorated with `{code}`, which the grader does not support.",
    "nested expression": "An expression of a kernel is nested too deeply.",
    "annotation line": "The return annotation of `{kernel}` starts on a line of its own.",
    "bound twice": lambda line, name, lines:
        f"Line {line} uses `{name}`, which is assigned on lines "
        f"{' and '.join(map(str, lines))}; a global of a kernel must be assigned exactly once, at "
        "the top level of the file. Pass a value that is chosen at run time to the launch.",
    "module value": "Line {line} uses the module `{code}` as a value, which a kernel cannot do.",
    "private name": "Kernel `{kernel}` uses the name `{name}`, which is reserved by Python.",
    "walrus": "An annotation contains `:=`, which a kernel cannot use.",
    "default": "The default of a parameter is `{code}`; defaults of a kernel must be constants.",
    "star parameters": "Kernel `{kernel}` takes `*` or `**` parameters.",
    "item assignment": "Line {line} assigns to `{code}`; kernels change memory with "
                       "`tl.store`, and cannot change an element of a block.",
    "construct": lambda line, construct:
        f"Line {line} uses {CONSTRUCTS[construct]}, which a kernel cannot use.",

    "joined comparison": lambda line, joined, others:
        f"`&` and `|` bind tighter than comparisons: line {line} compares `{joined}` with "
        f"{_code(others)}.",

    # files
    "no file": "There is no file {name}.",
    "link": "{name} is a link that points outside the exercise's folder.",
    "size": "The files have {n_bytes:,} bytes in total; the limit for a submission is {most:,}.",
    "no text": "The file is not {encoding} text.",
    "encoding": "The file declares the encoding `{encoding}`; a kernel file must be UTF-8 text.",
    "NUL": "Line {line} contains a NUL byte, which is not valid in a Python file.",
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
    "beside the solution": "The reference solution's code in the blanks that are left does not "
                           "work with the code that was filled in.",
    "blank reached": "`{kernel}` reached a blank: a `...` is not filled in yet.",
    "plain function": "`{name}` is launched with [grid], but it is a plain Python function.",
    "no kernels": "The file has no kernel: no function is decorated with `@triton.jit` or passed "
                  "to `triton.jit` by name.",
    "no function": "The file does not define a function `{name}`.",
    "signature": "The signature is `{name}({parameters})`; the module requires `{expected}`.",

    # launches
    "grid type": "The grid of `{kernel}` is {got}, of type {type}; expected a tuple of one to "
                 "three integers.",
    "grid length": "The grid of `{kernel}` has {count} numbers; expected one to three.",
    "grid size": lambda kernel, got, axis, most, largest:
        f"The grid of `{kernel}` has {got} programs along axis {axis}; CUDA allows 0 to {most:,} "
        f"there{f', and up to {largest:,} along axis 0' if axis else ''}.",
    "grid number": "The grid of `{kernel}` is {got} along axis {axis}, of type {type}; expected "
                   "an integer.",
    "too many launches": "Launch {count} in one call; at most {most} can be recorded.",
    "too many events": "One call made more than {most} allocations, copies and launches.",
    "unlike text": lambda kernel, line, own_line:
        f"The launched kernel `{kernel}` "
        + ("was not created by the text of the file" if own_line is None else
           f"is the one on line {own_line}")
        + f"; the file defines `{kernel}` on line {line}, and only that text is compiled and run.",
    "no parameter": lambda kernel, name, nearest:
        f"`{name}` is neither a parameter of `{kernel}` nor a launch option of Triton."
        + (f" Did you mean `{nearest}`?" if nearest else ""),
    "option type": "The launch option `{name}` is a {type}; only numbers and strings are "
                   "supported.",
    "option": "`{kernel}` is launched with the option `{name}`, which changes how the compiler "
              "translates it; this option is not allowed in a grade.",
    "complex argument": "`{name}` of `{kernel}` is a tensor of {dtype}; kernels support only real "
                        "dtypes.",
    "text argument": "`{name}` of `{kernel}` is a string of {count:,} characters; the limit is "
                     "{most:,}. Pass values in tensors.",
    "foreign argument": lambda name, kernel, origin:
        f"`{name}` of `{kernel}` is a tensor that is {_ORIGINS[origin]}; pass only arguments of "
        "the function and tensors that are allocated in the call.",
    "descriptor": "The tensor descriptor `{name}` of `{kernel}` describes {shape} elements with "
                  "strides {strides}; the last one is {n_bytes} bytes past the end of the "
                  "tensor's memory.",
    "no kernel": lambda kernel: sentence(
        f"`{kernel}` is launched, but the file defines no kernel of this name: a kernel is a "
        "function decorated with `@triton.jit` or passed to `triton.jit` by name"),
    "constexpr tensor": "The constexpr parameter `{name}` is a tensor.",
    "negated": "A tensor is a lazily negated view, such as the imaginary part of a conjugate; its "
               "values are not in memory.",
    "dimensions": "A tensor has {count} dimensions; at most {most} are supported.",
    "too many figures": "{task} reads the properties of more than {most} compiled kernels.",

    # host code
    "host changes": "`{code}` modifies the argument `{name}` in place, on the host.",
    "host values": "`{code}` creates a tensor from host values; values must come from inputs and "
                   "kernels.",
    "host check": "`{code}` checks values that a kernel has not written yet; host code can check "
                  "only inputs.",
    "host work": "`{code}` computes on tensors in host code; host code may only allocate, view, "
                 "copy and launch, and kernels do the computation.",
    "host read": "`{code}` reads values on the host that a kernel has not written yet; host code "
                 "can read only inputs.",
    "host reads": "`{code}` reads tensor values on the host, {count:,} in this call so far; "
                  "argument checks may read {most}, and `x.isnan().any()` reads one.",
    "fill value": "`{code}` writes {value}; host code may fill a tensor only with 0, 1, -1, inf "
                  "or -inf.",
    "foreign fill": "`{code}` fills a tensor that was not allocated in this call.",
    "foreign copy": "`{code}` copies values that come neither from an input nor from a kernel.",
    "host copy": "Host code copies a tensor of shape {shape}; in this module kernels do all "
                 "copies and casts.",
    "written past torch": lambda name:
        f"Host code wrote to memory {f'of the argument `{name}`' if name else 'it allocated'} "
        "without torch; only kernels may write values.",
    "conjugated result": "The returned tensor is a conjugated view, which torch would resolve when "
                         "it is read; return values that kernels have written.",
    "foreign result": lambda origin:
        "The returned tensor "
        f"{_STRANGE.get(origin, 'was created outside the call or outside torch')}; return a tensor "
        "that was allocated in the call and written by a kernel.",
    "on the CPU": lambda code, device:
        f"`{code}` has " + (f"device='{device}'" if device else "no device argument")
        + ": with inputs on a GPU, it would allocate on the CPU, where a kernel cannot access it.",
    "many floats": "The launches pass {count:,} different floats as arguments, for a result of "
                   "{elements:,} elements; the limit is {most:,}. Pass values in tensors, and "
                   "compute in the kernel.",
    "many words": "The launches pass {count:,} different integers, strings and tensor views as "
                  "arguments, for a result of {elements:,} elements; the limit is {most:,}. One "
                  "launch for many elements needs only a few sizes and strides.",
    "many moves": "The function copies or fills {count:,} tensor views on the host, for a result "
                  "of {elements:,} elements; the limit is {most:,}. Kernels should move single "
                  "elements.",
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
    "other part": lambda event: _other_work(f"a different part of a tensor is {_EVENTS[event]}"),
    "other bytes": lambda n_bytes, other: _other_work(f"{n_bytes} and {other} bytes are allocated"),
    "other event": lambda event, other: _other_work(
        f"a tensor is {_EVENTS[event]} for one and {_EVENTS[other]} for the other"),
    "other count": lambda count, other: _other_work(
        f"{count} allocations, copies and launches for one and {other} for the other"),
    "other result": lambda: _other_work("a different tensor is returned"),
    "no launches": "One of {calls} launches no kernel.",
    "variants": _variants,
    "not specialized": lambda kernel, name, count, calls:
        f"`{kernel}` lists `{name}` in do_not_specialize, but `{name}` is a constexpr: each value "
        f"still creates its own cache key ({count} for {calls}), and Triton rejects such a kernel.",

    # results, exceptions and answers
    "raised": lambda exception, text="", name="", hint="", module="", limit=0:
        sentence((f"`{name}`" if name else "The function") + f" raised {exception}"
                 + (f": {text}" if text else "")) + _cause(hint, module, limit),
    "in place": lambda names, got, type="":
        "The function works in place and returned "
        + {"nothing": "None", "tensor": "a tensor", "other": "something else"}.get(got, f"a {type}")
        + f", expected {f'the updated {_code(names)}' if names else 'None'}.",
    "strange dtype": "The function returned a tensor of {dtype}, a dtype that kernels cannot "
                     "write.",
    "no tensor": lambda type:
        f"The function returned a {type or 'something else'}, expected a torch.Tensor."
        + " A launch returns the compiled kernel; return the tensor that the kernel wrote."
        * (type == "CompiledKernel"),
    "input returned": "The function returned its input or a view of it, expected a new tensor.",
    "results": lambda count, in_tuple, expected, expected_tuple:
        f"The function returned {_tensors(count, in_tuple)}, expected "
        f"{_tensors(expected, expected_tuple)}.",
    "shape": lambda shape, expected, result="", number=None:
        f"{_result(result, number)} has shape {shape}, expected {expected}.",
    "dtype": lambda dtype, expected, result="", number=None:
        f"{_result(result, number)} is {dtype}, expected {expected}.",
    "not contiguous": lambda strides, result="", number=None:
        f"{_result(result, number)} has strides {strides}, expected a contiguous tensor.",
    "launches": lambda count, expected:
        f"The function made {in_launches(count)}; this case requires {expected or 'none'}.",
    "no exception": "No exception was raised, expected {expected}.",
    "exception": lambda exception, text, expected: sentence(
        f"The function raised {exception} ({text}), expected {expected}"),
    "late exception": "The function raised {expected} after it had launched a kernel; check "
                      "arguments before the first launch.",
    "message": lambda text, missing:
        f"The message “{text}” does not mention {' and '.join(missing)}.",
    "answer type": "`{name}` returned an object that does not consist of plain values: {type}.",
    "answer form": lambda name, answer, exception, text: sentence(
        f"`{name}` returned {answer}, which does not have the form that the contract gives "
        f"({exception}: {text})"),

    # processes
    "no end": lambda task, seconds: sentence(f"{task} did not finish within {seconds:.0f} s"),
    "memory held": lambda task, n_bytes, seconds, limit: sentence(
        f"{task} used {n_bytes / 1e9:.1f} GB of memory after {seconds:.0f} s and had not finished."
        f"{_memory_limit(limit)}"),
    "memory taken": lambda task, n_bytes, most: sentence(
        f"{task} used {n_bytes / 1e9:.1f} GB of memory; the limit is {most / 1e9:.1f} GB"),
    "too much memory": lambda task: sentence(f"{task} used too much memory"),
    "ended": lambda task, text: sentence(f"{task} ended the process, which {text}"),
    "not tried": "It was not run: the trees before it took {seconds:.0f} s.",
    "no reply": lambda task, text: sentence(
        f"The process sent an invalid reply after {task}: {text}"),
    "no account": lambda text, done="":
        f"The process {f'in which launches are {done}' if done else 'that ran the kernels'} "
        f"sent an invalid description of them: {text}.",
    "refused recording": "The recorded launches cannot be {done}: {text}.",
    "kernel memory": "`{kernel}` needs more memory than is available.",
    "no memory": lambda text: f"There is not enough memory for {text or 'an allocation'}.",
    "no memory for shape": "There is not enough memory for a tensor of shape {shape}.",
    "endless recursion": "`{kernel}` calls itself endlessly.",

    # the compiler
    "compiling": lambda kernels, seconds: _compiling(
        kernels, f"did not finish within {seconds:.0f} s, the limit for the launches of one call"),
    "compiling given up": lambda kernels, cpu_s, slowest, slowest_s: _compiling(
        kernels, f"was stopped after {cpu_s:.0f} s of CPU time: one variant"
        f"{f' (with {slowest})' if slowest else ''} took {slowest_s:.0f} s. Values and memory "
        "accesses were judged without it"),
    "refused by Triton": lambda kernel, target, text, quoted: _refused(
        f"Triton does not compile `{kernel}` for the {target}: ", text, quoted),
    "refused": lambda kernel, target, text, quoted: _refused(
        f"`{kernel}` does not compile for the {target}: ", text, quoted),
    "refused by the assembler": lambda kernel, target, text, quoted: _refused(
        f"`{kernel}` does not compile for the {target}: the assembler rejects the PTX that Triton "
        "generated: ", text, quoted),
    "too large": lambda kernel, target, text: sentence(
        f"`{kernel}` does not fit on the {target}: {text}"),
    "too many threads": "`{kernel}` does not fit on the {target}: `num_warps` requests {count:,} "
                        "threads per program, and CUDA allows at most {most:,} (32 warps).",
    "too many blocks": "`{kernel}` does not fit on the {target}: `num_ctas` requests clusters of "
                       "{count} thread blocks, and CUDA allows at most {most}.",

    # runs
    "other order": lambda index, number=None:
        f"{'The result' if number is None else f'Result {number + 1}'} changes when the programs "
        "of a launch run in the opposite order"
        f"{f'; the first element that differs is {list(index)}' * bool(index)}.",
    "strides": lambda strides, rank:
        "The values are right for a contiguous input and wrong for the same values with strides "
        f"{strides}.",
    "masked elements": lambda count, total, index, value, other, number=None:
        f"{'The result' if number is None else f'Result {number + 1}'} depends on the undefined "
        f"values of masked-off elements: {count} of {total} elements differ between two runs; the "
        f"first is {list(index)}, with {value:.6g} and {other:.6g}.",
    "unwritten on GPU": "Two runs on the GPU gave different results: they depend on uninitialized "
                        "memory.",
    "order on GPU": "Two runs on the GPU gave different results: they depend on the order in which "
                    "programs run.",
    "timed results": "A timed run returned different results than an earlier run on the same "
                     "inputs.",
    "input on GPU": lambda number=None:
        f"On the GPU, the call modified {'an input' if number is None else f'input {number + 1}'}.",
    "overrun": lambda kernel, n_bytes, side, tensor, nearest, farthest: sentence(
        f"on the GPU, `{kernel}` stored {n_bytes} bytes "
        f"{'past the end' if side == 'after' else 'before the start'} of "
        f"{f'`{tensor}`' if tensor else 'a tensor that is not one of its arguments'}, {nearest} "
        f"{'' if nearest == farthest else f'to {farthest} '}elements away from it"),
    "illegal access": lambda text: sentence(
        f"the GPU stopped a kernel that accessed memory outside every tensor ({text})"),
    "stopped by GPU": lambda text: sentence(f"the GPU stopped a kernel: {text}"),
    "impossible time": lambda ms, gpu, n_bytes=0, operations=0:
        f"{f'{ms:.3g} ms' if ms >= 1 else f'{ms * 1e3:.3g} µs'} is less than a {gpu} needs for "
        + (f"{n_bytes:,} bytes" if n_bytes else f"{operations:,} operations")
        + ": the work was not done during the measurement.",

    # what a case was made of
    "sparse tensor": "{tensor}, only the first and the last elements exist",
    "tensor without values": "{tensor}, without values",
    "block of a descriptor": "descriptor of {tensor}, block {block}",
    "launch": lambda kernel, grid, arguments, line=0:
        f"{kernel}[{', '.join(map(str, grid))}]{f', line {line}' if line else ''}: "
        f"{'; '.join(arguments)}",
    "more launches": "and {count} more",
    # costs: what was measured, beside the limit of a case
    "bytes": _bytes,
    "operations": lambda measured, least, ratio, limit:
        f"tl.dot computed {measured:,} FLOP, {ratio:.2f}x the required {least:,}; the limit is "
        f"{limit:.2f}x. The operands of the extra FLOP were loaded as well.",
    "sectors": _sectors,
    "requests": _requests,
    "launches over limit": lambda measured, limit:
        f"The function made {in_launches(measured)}; {limit} {'is' if limit == 1 else 'are'} "
        "enough.",
    "idle programs": "{measured} of {programs} programs stored nothing.",
    "idle sample": lambda measured, sample, programs:
        f"{measured} of {sample} sampled programs stored nothing (the first and the last "
        f"{sample // 2} of a grid of {programs}).",
    "programs": "{measured} programs ran; {limit} are enough.",
    "vector": lambda kernel, measured, limit, n_elements=0, itemsize=0, threads=0:
        f"A thread of `{kernel}` accesses {measured} bits at a time; {limit} are required"
        + (f": {n_elements:,} elements of {itemsize} bytes, split among {threads} threads, are "
           f"{measured // 8} bytes each." if threads else "."),
    "no access": "No load or store of the compiled kernels moves a large part of the bytes; each "
                 "thread is required to access {limit} bits at a time.",
    "spills": "`{kernel}` spills {measured} bytes per thread to memory: its blocks do not fit in "
              "{registers} registers per thread with num_warps={warps}.",
    "shared": "A program of `{kernel}` uses {measured:,} bytes of shared memory; the limit is "
              "{limit:,}.",
    "stages": lambda **figures: _stages("at least", **figures),
    "most stages": lambda **figures: _stages("at most", **figures),
    "tensor cores": lambda target:
        "The matrix product does not use tensor cores"
        + (f"; Triton does not support those of the {target}." if target else "."),
    "pieces": "`{kernel}` loads tiles in pieces of {measured} bytes, each by a thread that "
              "computes its own address; none of the loads is a TMA copy of the {target}.",
    "slow traffic": lambda n_bytes, least, **more: _too_slow(
        f"move at least {n_bytes:,} bytes between memory and caches, where {least:,} are "
        "required", **more),
    "few SMs": lambda programs, used, multiprocessors, **more: _too_slow(
        f"run on {used} of {multiprocessors} SMs (streaming multiprocessors), with "
        f"{programs} program{'s' * (programs > 1)}", **more),
    "slow products": lambda operations, ms, **more: _too_slow(
        f"compute {operations:,} FLOP with tl.dot, which take at least {ms:.3g} ms on the units "
        "that they use", **more),
}


def words(kind: str, **figures: Figure) -> str:
    """Renders a fault of this kind."""
    return _fault(Fault(kind, figures))


def _fault(it: Fault) -> str:
    figures: dict[str, Any] = it.figures
    if it.kind in _NAMES:
        return _name(_NAMES[it.kind], **figures)
    return _filled(_FAULTS[it.kind], figures)


# -- performance defects ---------------------------------------------------------------------------

_POOR = "{n_bytes:,} bytes of `{tensor}` are {done} in {sectors:,} sectors of 32 bytes: only " \
        "{used:.0%} of the moved bytes are used"


def _scalar_access(tensor: str, done: str, n_bytes: int, possible: int, step: int,
                   causes: Sequence[tuple[str, int, bool]], **_: object) -> str:
    reasons = [
        f"`{name}` starts {value} bytes after a multiple of 16" if is_tensor else
        f"`{name}` = {value:,} is not a multiple of {step if value % step else 16}"
        + ("" if value % step else f" (it is one of {step}, but Triton detects only 16)")
        for name, value, is_tensor in causes]
    why = f": {joined(reasons)}" if reasons else ""
    return (f"`{tensor}` is {done} {n_bytes} byte{'s' * (n_bytes > 1)} at a time by each thread, "
            f"where {possible} bytes are possible{why}")


def _aligned(causes: Sequence[tuple[str, int, bool]], step: int, remedy: str,
             **_: object) -> str:
    if remedy == "hints":
        return (f"State what is true: tl.multiple_of(offset, {step}) for the start of a row, and "
                f"tl.max_constancy(mask, {step}) for the mask. Pass the alignment as a "
                "tl.constexpr (such as math.gcd of 16, sizes and strides), so that other shapes "
                "get code of their own.")
    if remedy == "mask":
        return ("Only the last tile needs the mask: access whole tiles without it (if start + "
                "BLOCK <= n), and the rest with it.")
    if remedy == "start":
        return ("Pass tensors that start at a multiple of 16 bytes, or process the first elements "
                "apart and state the alignment of the rest with tl.multiple_of.")
    if remedy == "stride":
        return ("Rows start at different alignments, so no wide access is right for all of them. "
                f"Pad rows to a multiple of {step} elements where they are used often, as in a "
                "product; otherwise give a program several rows, so that more loads are in "
                "flight.")
    return ("The compiler could not derive the alignment: make starts, sizes and strides multiples "
            "of 16, keep them out of do_not_specialize, and state what is true of other values "
            "with tl.multiple_of.")


# By name: the observation, and the advice.
_DEFECTS: dict[str, tuple[_Form, _Form]] = {
    "launch-bound": (
        "{launches} launches take about {begin:.1f} µs to start, and their work takes {work:.1f} "
        "µs",
        "Do the work in one launch."),
    "small size": (
        "at this size, the launch takes about {begin:.1f} µs to start, and its work takes "
        "{work:.1f} µs: the time shows little of the kernel",
        lambda begin, work:
            f"Look at a size that is at least {10 * begin / max(work, 0.01):,.0f} times as large. "
            "At this one, no kernel can be much faster."),
    "too few programs": (
        lambda programs, multiprocessors:
            f"{programs} program{'s' * (programs > 1)}: {programs} of {multiprocessors} SMs "
            f"(streaming multiprocessors) work{'s' * (programs == 1)}, the others are idle",
        "Split the work into more programs, also along the reduction axis."),
    "wave tail": (
        "{programs} programs on {multiprocessors} SMs (streaming multiprocessors) run in {turns} "
        "waves, and the last wave uses {last:.0%} of the SMs",
        "Choose tile sizes so that the number of programs is a multiple of the number of SMs or "
        "just below one, use split-K, or process several tiles per program."),
    "tiny programs": (
        "{programs:,} programs move {n_bytes:,.0f} bytes each: launching them takes {times:.1f} "
        "times as long as the memory traffic",
        "Give each program more work: a larger block, or several rows."),
    "idle lanes": (
        lambda threads, elements:
            f"{threads} threads share {elements:.0f} element{'s' * (elements >= 1.5)} at a time: "
            "most threads are idle",
        "Use fewer warps (num_warps), or a larger block."),
    "contended atomics": (
        "{operations:,} atomic operations on one element are serialized: about {ms:.2f} ms",
        "Reduce within the program first, so that one atomic replaces many, or spread the atomics "
        "over several elements and reduce those in a second step."),
    "unfused launches": (
        "{launches} launches pass {n_bytes:,} bytes to each other through memory",
        "Fuse these steps into one kernel, so that intermediate results stay in registers."),
    "uncoalesced access": (
        _POOR,
        "The loaded indices decide which addresses a warp accesses; sort the indices, or load a "
        "whole row for each index."),
    "strided access": (
        _POOR,
        "Make the access coalesced: consecutive elements of the block should be contiguous in "
        "memory. To transpose, load a tile, transpose it in the program, and store it."),
    "scattered requests": (
        "each instruction of a warp that accesses `{tensor}` touches {sectors:.1f} sectors and "
        "uses {used:.0%} of their bytes; the rest is left to later instructions, which may find "
        "it in L1",
        "Let the threads of a warp access consecutive addresses: load the tile along its rows, and "
        "transpose it in the program (tl.trans), which uses shared memory."),
    "data read again": (
        lambda n_bytes, needed, tensor, lines:
            f"at least {n_bytes:,} bytes are read from memory, where {needed:,} are required: "
            f"`{tensor}` is read again{f' on {lines} lines' if lines > 1 else ''} after the caches "
            "have evicted it",
        "Keep the data in registers, or compute the result in one pass, such as with a running "
        "maximum and sum."),
    "register spills": (
        "`{kernel}` spills {n_bytes} bytes per thread to memory, because its values do not fit in "
        "{registers} registers per thread with num_warps={warps}",
        "Use more warps per program (num_warps), or a smaller block in a loop."),
    "few spills": (
        "`{kernel}` spills {n_bytes} bytes per thread to memory. So few usually stay in L1 and "
        "cost no time that can be measured",
        "If the spills are in a loop, try more warps per program (num_warps) or a smaller block."),
    "no tensor cores": (
        "tl.dot runs on FMA units, not on tensor cores",
        "Use fp16 or bf16 operands, or allow TF32 (input_precision) if its precision is "
        "sufficient."),
    "small tiles": (
        lambda reuse=None:
            "tl.dot compiles to mma.sync: tiles of fewer than 64 rows, or fewer than 4 warps, "
            "cannot use the fast tensor-core instructions of this GPU" if reuse is None else
            f"each loaded element is used in {reuse:.0f} multiplications; L2 cannot feed the "
            "tensor cores at this arithmetic intensity",
        "Use larger tiles, such as 128 x 128 with 4 or 8 warps."),
    "narrow async copies": (
        "an operand of tl.dot is copied to shared memory in pieces of {n_bytes} bytes "
        "({instructions} instructions) instead of 16",
        "Make the operand contiguous along K, or load it through a tensor descriptor."),
    "no pipelining": (
        lambda in_flight=0.0, needed=0.0: "the loop is not pipelined: " + (
            f"each iteration waits for its loads, with {in_flight / 1024:.0f} KiB per SM "
            f"(streaming multiprocessor) in flight where {needed / 1024:.0f} KiB are required"
            if needed else "tl.dot waits for its operands in each iteration"),
        lambda needed=0.0, **_: "Write the loop as tl.range(..., num_stages=3), use larger "
            "blocks, or launch more programs per SM." if needed else
            "Launch the kernel with num_stages=3 or more."),
    "scalar access": (_scalar_access, _aligned),
}


def defect(name: str, figures: Mapping[str, Any]) -> tuple[str, str]:
    """Renders a performance defect: the observation, and the advice."""
    observation, advice = _DEFECTS[name]
    return _filled(observation, figures), _filled(advice, figures)


# -- circumstances ---------------------------------------------------------------------------------


def _first_line(words: str, more: str) -> str:
    """Appends to the first line, because quoted code may follow below it."""
    first, *quoted = words.split("\n")
    return "\n".join([f"{first} {more}", *quoted])


def _others(count: int) -> str:
    return f" and {count} other{'' if count == 1 else 's'}" if count else ""


def _on_gpu(words: str, gpu: str, case: str, others: int, passes: bool) -> str:
    differ = f" {'They all pass' if others else 'It passes'} on the CPU." if passes else ""
    return _first_line(words, f"Observed on the {gpu} in the case '{case}'{_others(others)}."
                              f"{differ}")


# Reasons why a failure occurs only on a GPU.
_EFFECTS = {
    "": "",
    "other compiler": "The compiler for this GPU rejects code that compiles for others.",
    "shared memory": "This GPU has less shared memory than the one that launches were compiled "
                     "for.",
    "TF32": "Tensor cores of the GPU round float32 operands to TF32.",
    "any order": "On a GPU, programs run concurrently and in any order.",
    "flushed": "Some GPU instructions flush subnormal numbers to zero.",
    "fused": "The GPU fuses multiplications and additions (FMA) and approximates exp, division "
             "and square roots; the CPU rounds each operation.",
}
_CIRCUMSTANCES: dict[str, _Form] = {
    "sentence": lambda words: sentence(words),
    "file": "{name}: {words}",
    "size": lambda words, size, drawn="":
        f"At {size}{f' (smallest failing size; drawn: {drawn})' if drawn else ''}: {words}",
    "configuration": "With configuration {number} of {count}: {words}",
    "trials": "In the first call, after {count} autotuner trials on the caller's tensors: {words}",
    "timed": lambda words: f"{sentence(words)} Observed in a timed run.",
    "on the GPU": _on_gpu,
    "compiled": lambda words, case, others: _first_line(
        words, f"Observed in the case '{case}'{_others(others)}."),
    "refused too": lambda words, refusal: f"{sentence(words)} {text(refusal)}",
    "crash": lambda words, kernels, target:
        f"Triton's compiler crashed on {_code(kernels, ' or ')}, for the {target}: {words} The "
        "launch would crash any other program too.",
    "differing": lambda words, **it: f"{words} {region(it['region'], ('differs', 'differ'))}",
    "contrast": lambda words, contrast: _first_line(words, text(contrast)),
    "step": lambda words, group, title:
        f"Step {group} ({title}) was run with the reference solution in the blanks that are left. "
        f"{words}",
    "steps together": "The blanks that are left were taken from the reference solution. {words}",
    "reason": lambda words, effect: f"{sentence(words)} {_EFFECTS[effect]}".strip(),
    "right in float32": lambda words, dtype: _first_line(
        words, f"The same values are right in float32 and wrong in {dtype}."),
    "right in few bits": lambda words: _first_line(
        words, "With factors of only 1, -1 and 0, whose sums need few bits, the result is right."),
}

# -- what a finding means --------------------------------------------------------------------------

# Of a statement that decides a failure, by the kind of mistake in it; none holds code.
_MISTAKES = {
    "": "The case passes once this statement is corrected.",
    "strides": "Two strides are swapped: the stride of a dimension multiplies the index along this "
               "dimension.",
    "height and width": "The strides or sizes of height and width are swapped.",
    "arguments": "Two arguments are swapped, or one is the wrong one: arguments follow the order "
                 "of the parameters.",
    "branches": "The two values of `where` are swapped: the first is used where the condition is "
                "true, the second where it is false.",
    "function": "This statement calls the wrong function.",
    "placement": "The expression has the right parts, but one is in the wrong place: check what "
                 "belongs inside each pair of parentheses.",
    "terms": "The expression has the right parts, but a factor multiplies the wrong term, or two "
             "parts are swapped.",
    "order": "The elements of this tuple are in the wrong order.",
    "names": "Two names in this statement are swapped.",
    "values": "This statement, or one that computes a name it reads, gives a wrong value.",
    "one result": "The results before this one are right: this statement, or another one that only "
                  "this result depends on, is wrong.",
    "bound": "An index or a bound is wrong: a mask compares each index with the size of its own "
             "dimension.",
    "range": "The range of numbers is wrong here: elements and indices count from 0.",
    "stride": "A stride in an address is wrong: an index must be multiplied by the distance, in "
              "elements, to the next index of its own dimension.",
    "name": "This statement uses a wrong name.",
    "number": "A number in this statement is wrong.",
    "axis": "The index of an axis is wrong: axes count from 0.",
    "reduction axis": "The reduction runs along the wrong axis: `axis` names the dimension that is "
                      "reduced and that the result no longer has.",
    "comparison": "The comparison is wrong: check its direction, whether equal values belong, and "
                  "what is compared.",
    "operator": "An operator in this expression is wrong.",
    "operation": "This operation gives a wrong value: check its operator and its operands.",
    "sign": "A sign is wrong here: a minus is missing or too many.",
    "constant": "A constant stands where the value of a name belongs.",
    "missing attribute": "An attribute is missing in this expression.",
    "no grid": "The kernel is called without a grid: a launch is `kernel[grid](...)`.",
    "operands": "The two operands of an operator are swapped.",
    "parentheses": "Parentheses are missing or in the wrong place: `*`, `/`, `//` and `%` bind "
                   "closer than `+` and `-`.",
    "missing term": "A term is missing in this expression: something has to be added or "
                    "subtracted.",
    "missing factor": "A factor or divisor is missing in this expression.",
    "missing condition": "A condition is missing in this expression.",
    "superfluous term": "This expression has a term too many.",
    "superfluous factor": "This expression has a factor or divisor too many.",
    "superfluous condition": "This expression has a condition too many.",
    "root": "A term is added under the root that does not belong there.",
    "broadcast": "The block is broadcast along the wrong dimension: `[:, None]` makes a column of "
                 "it, `[None, :]` a row.",
    "no mask": "This access needs a mask that disables the elements outside the tensor.",
    "no other": "Masked elements of this load need a defined value: `other` gives it, and it has "
                "to be neutral for what follows.",
    "no cast": "A conversion is missing here: without it, the value keeps a type with too few bits "
               "or too small a range.",
    "needless cast": "This statement converts a value that has to keep its type.",
    "narrow type": "A value that needs float32, as an accumulator does, is kept in 16 bits.",
    "missing argument": "An argument of this call is missing.",
    "superfluous argument": "This call has an argument too many.",
    "no precision": "By default, this product rounds float32 operands to TF32, with 10 bits of "
                    "mantissa; `input_precision` asks for more.",
    "other": "Masked elements get a wrong value here: it has to be neutral for what follows, such "
             "as 0 for a sum and -inf for a maximum.",
    "overwritten": "This statement replaces the value of the iteration before: a sum over a loop "
                   "adds to what it had.",
    "added twice": "The right-hand side already adds to this name: assign it with `=` alone, or "
                   "the old value is added twice.",
    "text": "The case passes once these lines are corrected.",
    "missing update": "A statement is missing here: a name keeps a value that has to change.",
    "missing statement": "A statement is missing here.",
    "superfluous statement": "This statement does not belong here; without it, the case passes.",
    "no store": "The store of a result is missing here.",
}


# Of wrong values whose cause is not known, by their likeness to the right ones.
_IN_PLACE = "Each element stands in its place, and "
_MOVED = "The numbers are right and stand in the wrong places: an index, a stride or a broadcast " \
         "in an address is wrong."
_BY_PATTERN = {
    "factor": _IN_PLACE + "one factor or divisor, the same for all of them, is wrong or missing: "
                          "compare sizes, scales and constants with the formula.",
    "offset": _IN_PLACE + "one term, the same for all of them, is wrong or missing.",
    "factor by row": _IN_PLACE + "each row has a wrong factor: look at what is reduced over a row, "
                                 "and at what multiplies or divides the row.",
    "offset by row": _IN_PLACE + "each row has a wrong term: look at what is reduced over a row, "
                                 "and at what is added to or subtracted from the row.",
    "formula": _IN_PLACE + "the formula uses a wrong argument.",
    **dict.fromkeys(("shift", "reverse", "transpose", "rows", "elsewhere"), _MOVED),
    "precision": "The errors are as small as those of rounding: a value is kept in a type with too "
                 "few bits.",
    "nan": "An operation has no result there, such as 0 / 0, inf - inf or the root of a negative "
           "number.",
    "value": "These elements have one value, whatever the input is: they are initialized and not "
             "computed, or the same element is loaded for all of them.",
}


def of_pattern(data: Data) -> str:
    """The meaning of wrong values by what they look like or where they lie; empty if unknown."""
    if not isinstance(data, WrongValues):
        return ""
    if it := _BY_PATTERN.get(data.pattern):
        return it
    if data.region is not None:
        return "The other elements are right, and so is the formula: a mask, a bound or an index " \
               "tells these elements from the others."
    if _is_scattered(data):
        return "Wrong elements are scattered among right ones: a condition on values, such as a " \
               "comparison or a maximum, tells them apart."
    if _is_everywhere(data):
        few = "No" if data.count == data.total else "Hardly any"
        return f"{few} element is right, so the mistake concerns all programs: a term of the " \
               "formula or an operand of the address of a load."
    if data.map:
        return "The map shows which elements share the mistake: whole rows or columns point at " \
               "an index, blocks at the program or step that owns them, single elements at a " \
               "condition on values."
    return ""


def mistake(kind: str, part: str = "", unused: Sequence[str] = (),
            reads: Sequence[str] = ()) -> str:
    """The meaning of a finding whose cause is a statement with this kind of mistake.

    Args:
        part: the submission's expression that is wrong, where it is a single one.
        unused: names of the submission that the right statement uses and nothing else does.
        reads: names of the submission that only the wrong statement uses.
    """
    words = [_MISTAKES[kind]]
    if part:
        words.append(f"Look at `{part}`.")
    if unused:
        words.append(f"{_code(unused)} {'is' if len(unused) == 1 else 'are'} not used in this "
                     "function.")
    if reads:
        words.append(f"Check {_code(reads)} first: nothing else reads "
                     f"{'it' if len(reads) == 1 else 'them'}.")
    return " ".join(words)


NOT_WRITTEN = "This part is not written yet."
ONLY_HERE = "The CPU runs programs one after another and rounds every operation; the kernel " \
            "depends on behavior that Triton does not define."
NOTHING_TO_DO = "An empty tensor needs no computation, so the function should launch nothing."
MORE_OPERATIONS = "The kernels compute more than the formula needs, or in a slower format: check " \
                  "how often each loop runs, and the dtypes of the operands of `tl.dot`."
UNUSED_AXIS = "Two programs store to the same elements: their offsets do not depend correctly " \
              "on the program, or the grid has an axis that the kernel does not use."
PLAIN_VALUES = "The return value must consist of None, numbers, strings, and tuples, lists, " \
               "dicts and dataclasses of these."
TOO_MANY_OPERATIONS = \
    "The compiler unrolls every operation of a thread: large blocks on few warps, or unrolled " \
    "loops, produce too many instructions. Use smaller blocks, more warps (`num_warps`), or " \
    "loops that are not unrolled."


def strayed(access: str, masked: bool) -> str:
    """Explains a load or store outside a tensor, by whether it has a mask."""
    if masked:
        return f"The mask of the {access} is true for indices outside the tensor: the mask is " \
               "wrong, or the offset is (a stride, or a row that does not belong there)."
    return f"Some indices of the {access} are outside the tensor, and the {access} has no mask."


def where(line: int | None, file: str, marker: str, todos: Sequence[int], *,
          seen_at: int | None = None, also: int | None = None, instead: int | None = None,
          missing: bool = False) -> str:
    """Where to look: a line of the file, and places of the exercise.

    Args:
        seen_at: the line of the access or call that shows the mistake, where it is another one.
        also: a second line that is wrong too: both places have to change.
        instead: a line that may be wrong in place of the first.
        missing: a statement is missing behind the line.
    """
    places = [f"{'after ' * missing}line {line}{f' and line {also}' if also else ''}"
              f"{f' or line {instead}' if instead else ''}"
              f"{f' of {file}' if file else ''}"] if line else []
    if todos:
        between = "and" if also else "or"  # two causes, or alternatives
        numbers = ranges(todos) if len(todos) > 3 else joined(map(str, todos), between)
        places.append(f"{marker} {numbers}")
    words = ", ".join(places)
    shown = f" (seen at line {seen_at})" if seen_at and seen_at not in (line, also) else ""
    return words[:1].upper() + words[1:] + shown


def in_file(file: str) -> str:
    """Where to look: a whole file."""
    return f"In {file}"


def in_definitions(definitions: Sequence[tuple[str, int, str]]) -> str:
    """Where to look: definitions by name, line, and file where there are several."""
    places = [f"`{name}` (line {line}{f' of {file}' if file else ''})"
              for name, line, file in definitions]
    return f"In {' or '.join(places)}"


_NEXT_STEPS = {
    "P02": "Fix it, then run `tritonlab grade` again.",
    "T02": "Let each access cover at least 32 contiguous bytes, such as 8 columns of float32 in "
           "one iteration of a loop, then run `tritonlab grade` again.",
    "T07": "`tritonlab inspect` shows the bytes that each line moves, and performance defects.",
}


def next_step(code: str, data: Data, todos: Sequence[int]) -> str:
    """Returns the next step for a finding that has these places."""
    if code == "M09" and value_of(data, "kind") == "no barrier":
        return "Keep the value in a variable instead of loading it, or add a barrier between " \
               "store and load: `tl.debug_barrier()`."
    if code == "P01":
        return f"Fill in TODO {todos[0]} first; `tritonlab hint --todo {todos[0]}` shows a hint." \
            if todos else "Replace each `...`, then run `tritonlab grade` again."
    if todos and code != "P02":
        return f"`tritonlab hint --todo {todos[0]}` shows a hint."
    return _NEXT_STEPS.get(code, "Fix it, then run `tritonlab grade` again.")


# -- what a case was made of -----------------------------------------------------------------------


def tensor(dtype: str, shape: Sequence[int], stride: Sequence[int], offset: int) -> str:
    size = " x ".join(f"{side:,}" for side in shape) or "a scalar"
    many = "s" if len(stride) > 1 else ""
    strides = f", stride{many} {', '.join(f'{step:,}' for step in stride)}" if len(stride) else ""
    begin = f", storage offset {offset:,}" if offset else ""
    return f"{dtype}, {size}{strides}{begin}"


_FAMILIES: dict[type, Callable[[Any], str]] = {
    MemoryAccess: _memory_access,
    Unstored: _unstored,
    WrongValues: _wrong_values,
    Fault: _fault,
}


def fields() -> set[str]:
    """Returns the names of all fields and figures that a sign can match."""
    names = {"text", "circumstance", "kind"}.union(*map(dir, _FAMILIES))
    for form in (*_FAULTS.values(), *_NAMES.values(), _name):
        names.update(filter(None, (field for _, field, _, _ in Formatter().parse(form)))
                     if isinstance(form, str) else signature(form).parameters)
    return names


def text(data: Data, circumstances: Sequence[Fault] = ()) -> str:
    """Renders the data as a sentence, with the circumstances around it."""
    words = data if isinstance(data, str) else _FAMILIES[type(data)](data)
    for one in circumstances:
        words = _filled(_CIRCUMSTANCES[one.kind], {"words": words, **one.figures})
    return words
