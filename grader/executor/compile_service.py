"""Answers the judge: what the compiler makes of recorded launches, for a named GPU."""

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

from triton.compiler import CompiledKernel

from grader.engine.compiler import targets
from grader.engine.compiler.compile import (
    AMPERE,
    DoesNotCompile,
    build,
    lower,
    parse,
    parse_half,
    variant,
)
from grader.engine.compiler.kernel_reader import binary_of
from grader.engine.compiler.ptx import lines as ptx_lines
from grader.engine.compiler.sass import CannotDisassemble, Code, begin_codes, live_registers
from grader.engine.compiler.targets import Target
from grader.engine.compiler.timing_model.prediction import predict, predict_call
from grader.executor.binding import LaunchRefused, without_memory
from grader.executor.service import WARMUP, Json, KernelService, warm_recording
from grader.recording import model
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import Prediction, Survey
from grader.recording.model import Launch, Recording, View
from grader.recording.specialization import Form, is_size, specialization

_LONGEST_LISTING = 20_000  # lines
ELSEWHERE = "compiled by another compiler"  # stands for its operations
_ENOUGH = 2  # launches of a kind, no smaller than another one, that are lowered before it
# CPU time, so that a busy machine changes no verdict. Of the course's solutions, the slowest
# variant takes 3.4 s, and all that is compiled of one kernel 20 s (attention), on 2 cores of 2026.
SLOW_S = 10.0  # a variant that takes longer is slow
SLOW_VARIANTS_S = 40.0  # for all slow variants of one kernel
ALL_VARIANTS_S = 120.0  # for all variants of one kernel


def _live(compiled: Any, code: Code) -> list[tuple[int, int]]:
    """The most registers that are live at each line, as (line, count)."""
    with suppress(CannotDisassemble):  # of some version that has no such option
        live = live_registers(compiled.asm["cubin"], compiled.metadata.name)
        most: dict[int, int] = {}
        for step in code.instructions:
            if step.line is not None:
                most[step.line] = max(most.get(step.line, 0), live.get(step.address, 0))
        return sorted(most.items())[:_LONGEST_LISTING]
    return []


class CompileHandler(KernelService):
    """The compiler of one grade."""

    def __init__(self) -> None:
        super().__init__()
        self._answers: dict[Any, Json] = {}  # by all that the code can depend on
        self._built: set[Any] = set()  # families of which a launch was compiled to the end
        self._lowered: dict[Any, list[Form]] = {}  # by family
        self._parsed: set[Any] = set()  # kinds that the front end has accepted
        self._operations: dict[Any, set[str]] = {}  # compiled to the end, by target and kernel
        self._read: set[Any] = set()  # by all that the front end can depend on
        self._sizes: dict[str, set[str]] = {}  # constants that were sizes in a launch, by kernel
        self._spent: dict[str, _Spent] = {}  # by kernel
        # machine code that is being listed, by the id of what was compiled
        self._begun: dict[int, tuple[Any, Callable[[], Code]]] = {}

    def _compile(self, request: Json, fds: Sequence[int]) -> Json:
        """Every launch of a recording; of what does not compile, the finding.

        With ``whole`` each has a binary. Otherwise the first launch of a kind (of the same types,
        options and flags) is compiled to the end, for what refuses an instruction, unless the
        assembler takes all of its operations, whatever their shapes: each that another kind of the
        kernel had, and the usual ones. Kernels that are ``built`` have such a kind in another
        compiler. What refuses code earlier, such as the shared memory of a pipeline, grows with
        blocks, warps and with what is known of integers and addresses. So a launch is lowered until
        memory is allocated unless one of its kind was, whose sizes were no smaller and of which no
        less was known, or ``_ENOUGH`` with such sizes: with thirty integers hardly two launches can
        be compared. Every other launch is only read by the front end, once for each combination of
        constants.
        """
        recording, target = _asked(request)
        whole = bool(request.get("whole"))
        for kernel in request.get("built", ()):
            self._operations.setdefault((target.name, kernel), set()).add(ELSEWHERE)
        return {"status": "done", "launches": [
            self._launch(launch, target, whole) for launch in recording.launches]}

    def _time(self, request: Json, fds: Sequence[int]) -> Json:
        """Predicts the time of each launch from its survey; null without one, or by a guess.

        Those that are not ``mine`` have been timed by another compiler, or will be.
        """
        recording, target = _asked(request)
        each: list[Prediction | None] = []
        cold = True
        for launch, data, timed, mine in zip(recording.launches, request["surveys"],
                                             request["timed"], request["mine"], strict=True):
            survey = data and Survey.from_dict(data)
            if survey is None or survey.guessed:
                each.append(None)
                continue
            if mine:
                binary = Binary.from_dict(self._launch(launch, target, whole=True)["binary"])
                code = self._begin_code(launch, target)()
                each.append(predict(binary, code, survey, target, cold))
            else:
                each.append(timed and Prediction.from_dict(timed))
            cold = False
        predictions = [one for one in each if one]
        complete = predictions and len(predictions) == len(each)
        whole = predict_call(predictions, target) if complete else None
        return {"status": "done", "whole": whole and asdict(whole),
                "launches": [one and asdict(one) for one in each]}

    def _disassemble(self, request: Json, fds: Sequence[int]) -> Json:
        """Begins to disassemble launches of several recordings, for ``_time``."""
        target = targets.find(str(request.get("target")))
        self._begin_codes([self._code(launch, target) for data in request.get("recordings", ())
                           for launch in model.from_json(data).launches
                           if self._launch(launch, target, whole=True).get("binary")])
        return {"status": "done"}

    def _variants(self, request: Json, fds: Sequence[int]) -> Json:
        """By what Triton would find the code of each launch of several recordings again.

        Triton's own binder says so, which knows the kernel's signature; nothing is compiled.
        """
        target = targets.find(str(request.get("target")))
        variants = []
        for data in request.get("recordings", ()):
            for launch in model.from_json(data).launches:
                try:
                    kernel, bound = without_memory(self.kernels).bind(launch)
                    variants.append(variant(kernel, bound, launch.options, target))
                except (LaunchRefused, DoesNotCompile) as error:
                    return {"status": "done", "finding": error.finding.to_json()}
        return {"status": "done", "variants": variants}

    def _list(self, request: Json, fds: Sequence[int]) -> Json:
        """PTX and SASS of one launch, each line with that of the learner's file."""
        recording, target = _asked(request)
        launch = recording.launches[int(request["launch"])]
        compiled, code = self._code(launch, target), self._begin_code(launch, target)()
        sass = [(step.line, f"/*{step.address:04x}*/ {step}")
                for step in code.instructions if not step.never]
        return {"status": "done", "ptx": ptx_lines(compiled.asm["ptx"])[:_LONGEST_LISTING],
                "sass": sass[:_LONGEST_LISTING], "live": _live(compiled, code)}

    def _code(self, launch: Launch, target: Target) -> Any:
        """The code of a launch that compiles; nothing is compiled twice."""
        return build(*without_memory(self.kernels).bind(launch), launch.options, target)

    def _begin_code(self, launch: Launch, target: Target) -> Callable[[], Code]:
        compiled = self._code(launch, target)
        self._begin_codes([compiled])
        return self._begun[id(compiled)][1]

    def _begin_codes(self, every: Sequence[Any]) -> None:
        new = {id(one): one for one in every if id(one) not in self._begun}
        for (key, one), code in zip(new.items(), begin_codes([*new.values()]), strict=True):
            self._begun[key] = one, code

    def _launch(self, launch: Launch, target: Target, whole: bool) -> Json:
        try:
            kernel, bound = without_memory(self.kernels).bind(launch)
        except LaunchRefused as error:
            return {"finding": error.finding.to_json()}
        constants = {parameter.name for parameter in kernel.params if parameter.is_constexpr}
        sizes = self._sizes.setdefault(launch.kernel, set())
        sizes |= {name for name in constants & launch.arguments.keys()
                  if is_size(launch.arguments[name])}
        kind, form = specialization(launch, constants, sizes, {
            parameter.name for parameter in kernel.params if parameter.do_not_specialize})
        kind = (target.name, *kind)
        answer = self._answers.get((kind, form))
        if answer is not None and (answer or not whole):
            return answer
        spent = self._spent.setdefault(launch.kernel, _Spent())
        if spent.all_s > ALL_VARIANTS_S or spent.slow_s > SLOW_VARIANTS_S:
            return {"given_up": {"cpu_s": spent.all_s, "slowest": spent.slowest,
                                 "slowest_s": spent.slowest_s}}
        operations = self._operations.setdefault((target.name, launch.kernel), set())
        step: Callable[..., Any] = partial(build, operations=operations, only_new=not whole)
        family = _family(kind, target)
        whole = whole or family not in self._built
        lowered = self._lowered.setdefault(family, [])
        larger = [one for one in lowered if all(map(operator.ge, one.sizes, form.sizes))]
        read_only = len(larger) >= _ENOUGH or any(
            all(map(operator.ge, one.ones + one.multiples, form.ones + form.multiples))
            for one in larger)
        read = (kind, form.sizes, form.ones)
        if read_only and not whole and read in self._read:
            self._answers[kind, form] = {}
            return {}
        if not whole and kind in self._parsed:
            step = parse if read_only else partial(lower, operations=operations)
        elif not whole and read_only:
            step = partial(parse_half, operations=operations)
        started = _cpu_s()
        answer = self._answers[kind, form] = _answer(kernel, bound, launch, target, step)
        spent.note(_cpu_s() - started, _variant_title(kernel, bound, launch.options))
        if "finding" not in answer:  # what is refused says nothing of smaller ones
            if whole:
                self._built.add(family)
            self._parsed.add(kind)
            self._read.add(read)
            if whole or not read_only:
                lowered.append(form)
        return answer

    operations: ClassVar = {"load": KernelService.load, "compile": _compile, "time": _time,
                            "disassemble": _disassemble, "list": _list, "variants": _variants}


def _asked(request: Json) -> tuple[Recording, Target]:
    return model.from_json(request.get("recording")), targets.find(str(request.get("target")))


def _family(kind: Any, target: Target) -> str:
    """Kinds that differ in bf16 and f16 alone have the same layouts and memory."""
    return repr(kind).replace("bfloat16", "float16") if target.capability >= AMPERE else repr(kind)


def _answer(kernel: Any, bound: Mapping[str, Any], launch: Launch, target: Target,
            step: Callable[..., Any]) -> Json:
    """Compiles a launch by one of ``build``, ``lower``, ``parse`` and ``parse_half``."""
    try:
        code = step(kernel, bound, launch.options, target)
    except DoesNotCompile as error:
        return {"finding": error.finding.to_json()}
    if not isinstance(code, CompiledKernel):
        return {}
    return {"binary": binary_of(code, target, launch.kernel, launch.options).to_dict()}


@dataclass
class _Spent:
    """CPU seconds that compiling the variants of one kernel has taken."""

    all_s: float = 0.0
    slow_s: float = 0.0
    slowest_s: float = 0.0
    slowest: str = ""

    def note(self, seconds: float, variant: str) -> None:
        self.all_s += seconds
        self.slow_s += seconds if seconds > SLOW_S else 0.0
        if seconds > self.slowest_s:
            self.slowest_s, self.slowest = seconds, variant


def _cpu_s() -> float:
    """CPU seconds of this process and of children that have ended, such as the assembler."""
    return sum(os.times()[:4])


def _variant_title(kernel: Any, bound: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """The constants and options of a launch: "BLOCK_SIZE=65536, num_warps=1"."""
    constants = {parameter.name: bound[parameter.name] for parameter in kernel.params
                 if parameter.is_constexpr}
    return ", ".join(f"{name}={value!r:.40}" for name, value in {**constants, **options}.items())


def warm() -> None:
    """Compile a tiny kernel, so that forked children find the compiler at work already.

    Raises:
        RuntimeError: it does not compile.
    """
    handler = CompileHandler()
    handler.handle({"op": "load", "path": WARMUP}, [])
    x = View(0, "float32", (3, 4), (4, 1), 0)
    reply = handler.handle({"op": "compile", "recording": warm_recording(x),
                            "target": targets.DEFAULT}, [])
    if reply["status"] != "done" or "binary" not in reply["launches"][0]:
        raise RuntimeError(f"the compiler does not take its own kernel: {reply}")
