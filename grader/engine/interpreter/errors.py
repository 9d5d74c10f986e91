"""Turns exceptions of a kernel into findings with Triton's messages."""

import linecache
import re
from traceback import walk_tb
from types import FrameType

from grader.finding import Figure, fault, looked_up
from grader.report import Finding, words

_MAX_MESSAGE = 400


class NotInAKernel(Exception):
    """Python that Triton's compiler does not accept. ``line`` is set where no frame tells it."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class LoopChanges(NotInAKernel):
    """A loop changes the type of a variable, or its ``shape`` to another one."""

    def __init__(self, message: str, line: int | None, shape: Figure, new_shape: Figure) -> None:
        super().__init__(message, line)
        self.shape, self.new_shape = shape, new_shape


class KernelError(Exception):
    """A kernel did what cannot go well on any GPU; ``code`` is the finding's."""

    def __init__(self, message: str, code: str = "R01", line: int | None = None) -> None:
        super().__init__(message)
        self.code, self.line = code, line


class NotInterpreted(Exception):
    """Something that a GPU can do and this interpreter cannot: the kernel is not to blame."""


# The real compiler stops at these too, before anything runs.
_COMPILE_TIME: tuple[type[BaseException], ...] = (
    NotInAKernel, ValueError, TypeError, AttributeError, NameError, KeyError, IndexError,
    NotImplementedError, SyntaxError,
)
# What the engine raises on purpose, and what a kernel can bring about anywhere.
_MEANT = (KernelError, NotInAKernel, NotInterpreted, MemoryError, RecursionError)
# Parts of the engine that a kernel cannot make raise: an error there is the grader's own.
_OURS = tuple(f"grader.engine.interpreter.{name}" for name in (
    "memory", "memory_checks", "address_space", "index_runs", "shadow_memory", "transaction",
    "happens_before", "traffic", "atomics", "poison", "analysis", "barrier_check"))


def explain(error: BaseException, file: str, kernel: str) -> Finding:
    """The finding for an exception that left a kernel.

    Raises:
        RuntimeError: the exception came from the grader itself.
    """
    innermost = error
    while innermost.__cause__ is not None:
        innermost = innermost.__cause__
    if not isinstance(innermost, _MEANT) and _module(innermost) in _OURS:
        raise RuntimeError(f"the engine failed while it ran `{kernel}`") from error
    if isinstance(innermost, NotInterpreted):
        raise RuntimeError(f"`{kernel}` uses {innermost}, which the interpreter does not support"
                           ) from error
    line = getattr(innermost, "line", None) or raised_line(file, error)
    if isinstance(innermost, KernelError):
        return Finding(innermost.code, fault("stopped", kernel=kernel, text=str(innermost)), line)
    if isinstance(innermost, MemoryError):
        return Finding("R04", fault("kernel memory", kernel=kernel), line)
    if isinstance(innermost, RecursionError):
        return Finding("R01", fault("endless recursion", kernel=kernel), line)
    if _has_blank(error, file) or "ellipsis" in str(innermost).lower():
        return Finding("P01", fault("blank reached", kernel=kernel), line)
    message = _message(innermost)
    if isinstance(innermost, LoopChanges):
        return Finding("L05", fault("carried type", kernel=kernel, text=message,
                                    shape=innermost.shape, new_shape=innermost.new_shape), line)
    if isinstance(innermost, AssertionError) and not _inside_triton(innermost):
        return Finding("R01", fault("assertion", kernel=kernel, text=message), line)
    if isinstance(innermost, _COMPILE_TIME) or _inside_triton(innermost):
        return Finding("L05", fault("not compiled", kernel=kernel, text=message), line)
    return Finding("R01", fault("raised in kernel", kernel=kernel, text=message,
                                exception=type(innermost).__name__), line)


def _message(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return words("look-up failed", **looked_up(error))
    text = re.sub(r"\s+", " ", str(error)).strip()
    if not text and isinstance(error, AssertionError) and _inside_triton(error):
        frame, line = _frames(error)[-1]  # Triton's condition is all that there is to say
        text = linecache.getline(frame.f_code.co_filename, line).strip()
        text = words("Triton's assertion", code=text)
    elif not text and not isinstance(error, AssertionError):
        text = type(error).__name__
    unset = re.match(r"cannot access (?:local|free) variable '(\w+)'|local variable '(\w+)' "
                     r"referenced|free variable '(\w+)' referenced", text)
    if isinstance(error, NameError) and unset:
        text = words("assigned elsewhere", name=unset[unset.lastindex or 0])
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + " …"


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    return list(walk_tb(error.__traceback__))


def raised_line(file: str, error: BaseException) -> int | None:
    """The innermost line of a file that an exception went through."""
    lines = [line for frame, line in _frames(error) if frame.f_code.co_filename == file]
    return lines[-1] if lines else None


def _has_blank(error: BaseException, file: str) -> bool:
    return any(
        value is ...
        for frame, _ in _frames(error) if frame.f_code.co_filename == file
        for value in frame.f_locals.values()
    )


def _inside_triton(error: BaseException) -> bool:
    """Whether Triton itself raised it: an assertion there is a check of the language."""
    return _module(error).startswith("triton.")


def _module(error: BaseException) -> str:
    """Returns the frame that raised; for NumPy, the frame of its caller."""
    names = [str(frame.f_globals.get("__name__", "")) for frame, _ in _frames(error)]
    while names and names[-1].startswith(("numpy", "ml_dtypes")):
        names.pop()
    return names[-1] if names else ""
