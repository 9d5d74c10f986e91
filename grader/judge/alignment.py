"""The arguments that make accesses narrow: launches are compiled with aligned ones instead."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from msgspec import structs

from grader.diagnosis.perf_lints import Unaligned
from grader.engine.compiler.targets import Target
from grader.processes.session import Session
from grader.recording.arena import itemsize
from grader.recording.compiled_kernel import Binary
from grader.recording.model import Argument, Launch, Recording
from grader.submission.dataflow import parameters_behind
from grader.submission.kernel_digest import kernel_code

ALIGNMENT = 16  # bytes of an address, and the divisor of integers, that Triton specializes for
MOST = 8  # arguments that are tried; each takes a compilation

_Widths = Mapping[tuple[int, str], int]  # bits of the widest access, by line and kind


def unaligned(session: Session, recording: Recording, launch: Launch, binary: Binary,
              lines: Collection[int | None], source: str, target: Target) -> tuple[Unaligned, ...]:
    """Finds the unaligned arguments without which the accesses of lines would be wider.

    With all arguments aligned, accesses are as wide as they can become. An argument is a cause if
    they are narrower with it alone as it is.

    Args:
        recording: holds the launch.
        binary: what the launch compiled to.
        lines: of the accesses.
        source: the learner's file.

    Raises:
        grader.processes.replies.Stopped: the compiler process did not survive it.
    """
    narrow = {key: bits for key, bits in _widths(binary).items() if key[0] in lines}
    code = kernel_code(source, launch.kernel)
    excess = {name: value for name, argument in launch.arguments.items()
              if code and name not in code.constants and (value := _excess(argument))}
    if not narrow or not 0 < len(excess) <= MOST:
        return ()
    widest = _compiled(session, recording, launch, excess, target)
    causes = []
    for name in excess:
        without = _compiled(session, recording, launch, excess.keys() - {name}, target)
        for (line, kind), bits in narrow.items():
            best = widest.get((line, kind), 0)
            if best > max(bits, without.get((line, kind), best)):
                argument = launch.arguments[name]
                is_tensor = argument.kind == "tensor"
                behind = [parameters_behind(source, line, mask=mask) for mask in (False, True)]
                causes.append(Unaligned(
                    line, kind, name, excess[name] if is_tensor else argument.value, is_tensor,
                    best, *(name in parameters for parameters in behind)))
    return tuple(causes)


def _excess(argument: Argument) -> int:
    """How much an argument exceeds a multiple of 16; 0 of those that cannot."""
    match argument.kind:
        case "int" if argument.value != 1:  # Triton compiles a constant for 1
            return int(argument.value % ALIGNMENT)
        case "tensor":
            return int(argument.value.offset * itemsize(argument.value) % ALIGNMENT)
    return 0


def _compiled(session: Session, recording: Recording, launch: Launch, names: Iterable[str],
              target: Target) -> _Widths:
    """The widths of accesses if the named arguments are aligned; empty where it cannot compile."""
    arguments = {**launch.arguments,
                 **{name: _aligned(launch.arguments[name]) for name in names}}
    others = (event for event in recording.events if not isinstance(event, Launch))
    changed = replace(recording, events=(*others, structs.replace(launch, arguments=arguments)))
    compiled = session.begin_compile(changed, target, whole=True)()
    return _widths(compiled.binaries[0]) if compiled.binaries else {}


def _aligned(argument: Argument) -> Argument:
    value = structs.replace(argument.value, offset=0) if argument.kind == "tensor" else \
        argument.value // ALIGNMENT * ALIGNMENT or ALIGNMENT
    return structs.replace(argument, value=value)


def _widths(binary: Binary) -> _Widths:
    widths: dict[tuple[int, str], int] = {}
    for access in binary.accesses:
        if access.line is not None:
            kind = "load" if access.kind == "async copy" else access.kind
            widths[access.line, kind] = max(access.bits, widths.get((access.line, kind), 0))
    return widths
