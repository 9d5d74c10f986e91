"""Mistakes of a suite's author, with file, line, cause and cure."""

import ast
import contextlib
import difflib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

MODULE = "grader_suite_"  # how the names of a suite's modules begin
REFERENCE = "docs/suites.md"
_KEYWORD = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'")
_LACKS = re.compile(r"(\w+)(?:\.__init__)?\(\) missing \d+ required [\w -]+: (.+)")
_TWICE = re.compile(r"(\w+)(?:\.__init__)?\(\) got multiple values for argument '(\w+)'")
_IMPORT = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")


class SuiteMistake(ValueError):
    """A mistake in the files of a suite.

    Args:
        cause, cure: sentences.
        place: file and line.
        element: of a list of cases: the number of the wrong one, from 0, and how many there are.
    """

    def __init__(self, cause: str, cure: str = "", place: str = "",
                 element: tuple[int, int] | None = None) -> None:
        super().__init__(cause, cure, place, element)
        self.cause = cause
        self.cure = cure
        self.place = place
        self.element = element

    def __str__(self) -> str:
        return f"{self.place}: {self.cause} {self.cure}".removeprefix(": ").strip()

    def at(self, place: str) -> "SuiteMistake":
        """The same mistake with a place, unless it has one."""
        return SuiteMistake(self.cause, self.cure, self.place or place)


def place(file: str | Path, line: int | None = None) -> str:
    """A file, relative to the current folder if it lies below it, and a line."""
    path = Path(file)
    with contextlib.suppress(ValueError, OSError):
        path = path.relative_to(Path.cwd())
    return f"{path}, line {line}" if line else str(path)


def place_of(function: Callable[..., Any]) -> str:
    """The place where a function of a suite is defined; empty for other callables."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return place(code.co_filename, code.co_firstlineno) if code else ""


def nearest(name: str, names: Iterable[str]) -> str:
    """``" Did you mean 'traffic'?"`` with the most similar name; empty if none is similar."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""


def explained(error: BaseException, file: Path) -> SuiteMistake:
    """The mistake behind an exception that the import of ``file`` raised."""
    if isinstance(error, SyntaxError) and error.filename:
        return SuiteMistake(f"Python cannot parse this: {error.msg}.", "Correct the syntax.",
                            place(error.filename, error.lineno))
    frames = [*_frames(error)]
    if not frames:
        return _without_place(error, None).at(place(file))
    frame, line = frames[-1]
    if isinstance(error, TypeError) and (keyword := _KEYWORD.search(str(error))):
        line = _line_of(frame.f_code.co_filename, rf"\b{keyword[2]}\s*=", line)
    if isinstance(error, SuiteMistake) and error.element:
        line = _line_of_element(frame.f_code.co_filename, line, *error.element)
    return _without_place(error, frame).at(place(frame.f_code.co_filename, line))


def raised_in_suite(error: Exception) -> SuiteMistake | None:
    """The mistake behind an exception of a grade; None if code of the grader raised it."""
    frames = [*_frames(error)]
    if isinstance(error, SuiteMistake) and error.place:
        return error
    if not frames:
        return None
    frame, line = frames[-1]
    mistake = _without_place(error, frame)
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return SuiteMistake(f"{mistake.cause}{notes}", mistake.cure,
                        place(frame.f_code.co_filename, line))


def call(role: str, function: Callable[..., Any], *inputs: Any) -> Any:
    """Calls a function of a suite; ``role`` names it in messages, such as ``reference``.

    Raises:
        SuiteMistake: the function raised an exception.
    """
    try:
        return function(*inputs)
    except Exception as error:
        mistake = raised_in_suite(error) or _without_place(error, None).at(place_of(function))
        raise SuiteMistake(f"the {role} fails: {mistake.cause}", mistake.cure,
                           mistake.place) from error


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """The frames of a suite's own code that raised an exception, or called what raised it.

    Without those that called the grader, whose failures are not the author's.
    """
    frames: list[tuple[FrameType, int]] = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(MODULE):
            frames.append((frame, line))
        elif module.startswith("grader.") and not module.startswith("grader.suite."):
            frames.clear()
    return iter(frames)


def _without_place(error: BaseException, frame: FrameType | None) -> SuiteMistake:
    """Cause and cure of an exception; ``frame``: where the suite's code raised it."""
    message = str(error)
    match error:
        case SuiteMistake():
            return error
        case TypeError() if keyword := _KEYWORD.search(message):
            return unknown_keyword(keyword[1], keyword[2],
                                   _keywords(_callable(keyword[1], frame)))
        case TypeError() if lacks := _LACKS.search(message):
            return SuiteMistake(f"`{lacks[1]}` is called without {lacks[2]}.",
                                f"Add it; {REFERENCE} lists what each function takes.")
        case TypeError() if twice := _TWICE.search(message):
            return SuiteMistake(f"`{twice[1]}` gets '{twice[2]}' twice: by its place and its name.",
                                "Pass all by name: cases=[…], for instance.")
        case ModuleNotFoundError():
            names = {"torch", "triton", "math", *sys.stdlib_module_names}
            near = nearest(str(error.name), names)
            return SuiteMistake(f"There is no module '{error.name}'.{near}",
                                "Correct its name, or install it.")
        case ImportError() if missing := _IMPORT.search(message):
            near = nearest(missing[1], dir(sys.modules.get(missing[2])))
            return SuiteMistake(f"{missing[2]} has no '{missing[1]}'.{near}",
                                f"{REFERENCE} lists the vocabulary.")
        case NameError():
            return _unknown_name(str(error.name), frame)
        case AttributeError() if error.name and error.obj is not None:
            owner = getattr(error.obj, "__name__", type(error.obj).__name__)
            return SuiteMistake(f"`{owner}` has no attribute '{error.name}'."
                                f"{nearest(error.name, dir(error.obj))}", "Correct the name.")
    text = " ".join(message.split())
    text = text if len(text) <= 200 else f"{text[:199]}…"
    cause = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return SuiteMistake(cause if cause.endswith((".", "…", "?")) else f"{cause}.",
                        "Correct this line of the suite.")


def unknown_keyword(name: str, keyword: str, keywords: Iterable[str]) -> SuiteMistake:
    """The mistake of a call or a table with a keyword that does not exist."""
    return SuiteMistake(f"`{name}` has no keyword '{keyword}'.{nearest(keyword, keywords)}",
                        f"{REFERENCE} lists all keywords.")


def _unknown_name(name: str, frame: FrameType | None) -> SuiteMistake:
    vocabulary = _vocabulary()
    if name in vocabulary:
        return SuiteMistake(f"'{name}' is not imported.", f"Import it from {vocabulary[name]}.")
    names = {*vocabulary, *(frame.f_globals if frame else ())}
    return SuiteMistake(f"'{name}' is not defined.{nearest(name, names)}",
                        "Correct the name, or define it above this line.")


def _vocabulary() -> dict[str, str]:
    """The module of each public name that a suite may import."""
    suite = sys.modules["grader.suite"]
    return dict.fromkeys(suite.__all__, "grader.suite")


def _callable(name: str, frame: FrameType | None) -> Any:
    """The function or class that a suite calls by this name, or calls through another one."""
    scope = frame.f_globals if frame else {}
    return scope.get(name) or getattr(sys.modules["grader.suite"], name, None)


def _keywords(called: Any) -> list[str]:
    """The keywords of a function or class; without fields that are not an author's."""
    if called is None:
        return []
    hidden = getattr(called, "FILLED_BY_LOAD", ())
    return [name for name in inspect.signature(called).parameters if name not in hidden]


def _line_of(file: str, pattern: str, start: int) -> int:
    """The first line from ``start`` on with a pattern; ``start`` if there is none."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return start
    return next((number for number, text in enumerate(lines[start - 1:], start)
                 if re.search(pattern, text)), start)


def _line_of_element(file: str, start: int, number: int, count: int) -> int:
    """The line of one of ``count`` cases of the call at ``start``, where stars permit to count."""
    with contextlib.suppress(OSError, SyntaxError):
        for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
            if not isinstance(node, ast.keyword) or node.arg != "cases" or node.lineno < start \
                    or not isinstance(node.value, ast.List):
                continue
            elements = node.value.elts
            for there, place in ((elements[:number + 1], number),
                                 (elements[number - count:], number - count)):
                if there and not any(isinstance(one, ast.Starred) for one in there) \
                        and -len(elements) <= place < len(elements):
                    return elements[place].lineno
    return start


# ---------------------------------------------------------------------------------------------
# Values of the vocabulary


def number(owner: str, name: str, value: Any, unit: str, *, least: float = 0,
           most: float = float("inf"), whole: bool = False, above: bool = False) -> None:
    """Refuses a value that is not a number of this range; None is a limit that is not set."""
    kinds = int if whole else (int, float)
    if value is None or (isinstance(value, kinds) and not isinstance(value, bool)
                         and least <= value <= most and not (above and value == least)):
        return
    kind = "a whole number" if whole else "a number"
    bound = f"above {least:g}" if above else f"of {least:g} or more"
    bound += f" and at most {most:g}" if most < float("inf") else ""
    raise SuiteMistake(f"{owner}: {name} = {value!r} is not {kind} {bound}.",
                       f"Its unit: {unit}.")


def texts(owner: str, name: str, value: Any) -> None:
    """Refuses a text where a tuple of texts belongs."""
    if isinstance(value, str):
        raise SuiteMistake(f"{owner}: {name} = {value!r} is a text, not a tuple of texts.",
                           f"Write {name}=({value!r},) with a comma.")
