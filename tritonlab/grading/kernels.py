"""Inspects the kernels of an exercise as compiled, traces and times them; records nothing."""

import ast
import contextlib
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grader.bench import bench as benchmarks
from grader.bench.bench import Clock, Predicted, measuring
from grader.bench.benchmark import Benchmark
from grader.engine.compiler.targets import Target
from grader.gpu import detect
from grader.gpu.client import NoGpu
from grader.inspect import inspection
from grader.inspect import sweep as sweeps
from grader.inspect.comparison import Comparison
from grader.inspect.inspection import Inspection
from grader.inspect.sweep import Sweep
from grader.sandbox import Sandbox
from grader.submission.launch_parameters import UnknownParameter, Value
from grader.text import sentence
from grader.trace import NoSuchProgram, NotTraceable, TracedCase, is_traceable
from grader.trace import trace as trace_case
from tritonlab.course.course import EXERCISE, Module
from tritonlab.errors import BadCourse, TritonlabError, brief, shown
from tritonlab.grading.grade import SEED, grader_for, invalid_seed, suite_of
from tritonlab.progress import caches
from tritonlab.workspace import kept_versions, workspace
from tritonlab.workspace.passed_sources import snapshot
from tritonlab.workspace.submission import Submission

OnEvent = Callable[[str], None]


def inspect(submission: Submission, target: Target, *, case: str | None = None,
            listings: bool = False, values: Mapping[str, Value] | None = None,
            on_event: OnEvent | None = None, sandbox: Sandbox | None = None) -> Inspection:
    """Compiles a submission for a GPU and inspects it; the workspace keeps this version.

    Raises:
        TritonlabError: as of ``grader_for``; or the file has no parameter of these names.
    """
    content = snapshot(submission)
    with grader_for(submission.module, sandbox) as box, _parameters_of(submission):
        suite = suite_of(submission.module)
        inspected = inspection.inspect(submission.kernel, suite, target, case=case,
                                       listings=listings, values=values, on_event=on_event,
                                       sandbox=box)
    if submission.workspace is not None and submission.in_place:
        kept_versions.keep(submission.workspace.mark, submission.module, content)
    return inspected


def sweep(submission: Submission, target: Target, settings: Mapping[str, Sequence[Value]], *,
          case: str | None = None, on_event: OnEvent | None = None,
          sandbox: Sandbox | None = None) -> Sweep:
    """Inspects a submission with each combination of values; raises as ``inspect``."""
    with grader_for(submission.module, sandbox) as box, _parameters_of(submission):
        return sweeps.sweep(submission.kernel, suite_of(submission.module), target, settings,
                            case=case, on_event=on_event, sandbox=box)


LAST = "last"


def compare(submission: Submission, target: Target, against: str, *, case: str | None = None,
            values: Mapping[str, Value] | None = None, on_event: OnEvent | None = None,
            sandbox: Sandbox | None = None) -> Comparison:
    """Inspects a submission beside another version of it.

    Args:
        against: the path of the other version, or ``last``: the version before this one that was
            graded or inspected in the workspace.

    Raises:
        TritonlabError: as of ``inspect``; or there is no such version.
    """
    with tempfile.TemporaryDirectory(prefix="tritonlab-") as folder:
        if against == LAST:
            kernel, label = _last(submission, Path(folder)), "the last one"
        else:
            kernel = Path(against).expanduser()
            workspace.check_file(kernel)
            label = shown(kernel)
        with grader_for(submission.module, sandbox) as box:
            one, other = (
                inspect(version, target, case=case, values=own, on_event=on_event, sandbox=box,
                        listings=True)
                for version, own in ((replace(submission, kernel=kernel), None),
                                     (submission, values)))
    return Comparison(label, one, other)


def _last(submission: Submission, folder: Path) -> Path:
    """Writes the version before the present one to a folder; returns its kernel file."""
    place, content = submission.workspace, None
    if place is not None and submission.in_place:
        content = kept_versions.before(place.mark, submission.module, snapshot(submission))
    if content is None:
        raise TritonlabError(
            f"No other version of {submission.module.id} is kept.",
            "`grade` and `inspect` keep the versions in the workspace that they see. Edit the file "
            "and repeat this command, or name another file: `--against FILE`.")
    for name, data in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / EXERCISE


@contextlib.contextmanager
def _parameters_of(submission: Submission) -> Iterator[None]:
    """Raises TritonlabError for a parameter that the file does not have."""
    try:
        yield
    except UnknownParameter as error:
        meant = f" Did you mean {error.nearest}?" if error.nearest else ""
        names = f"Set one of {', '.join(error.names)}." if error.names else \
            "Edit the file instead: it has no constant and no launch that takes one."
        raise TritonlabError(f"{shown(submission.kernel)} has no parameter '{error.name}'.{meant}",
                             names) from error


def settings_of(words: Sequence[str]) -> dict[str, list[Value]]:
    """Reads ``NAME=VALUE`` and ``NAME=VALUE,VALUE``.

    Raises:
        TritonlabError: a text is neither, or there are too many combinations.
    """
    settings: dict[str, list[Value]] = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not name.strip().isidentifier() or not values.strip():
            raise TritonlabError(f"'{word}' does not set anything.",
                                 "Type `--set NAME=VALUE`, such as `--set BLOCK_N=64,128`.")
        settings.setdefault(name.strip(), []).extend(map(_value, values.split(",")))
    count = math.prod(map(len, settings.values()))
    if count > sweeps.MOST:
        raise TritonlabError(f"These are {count} combinations of values; at most {sweeps.MOST} are "
                             "compared.", "Give some parameters fewer values.")
    return settings


def _value(text: str) -> Value:
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = ...
    if value is not None and not isinstance(value, int | float | bool | str):
        raise TritonlabError(f"'{text.strip()}' is not a value.",
                             "Give a number, True, False, None or a text in quotes.")
    return value


def trace(submission: Submission, *, case: str | None = None, seed: str | None = None,
          program: tuple[int, ...] = (), launch: int = 0, on_event: OnEvent | None = None,
          sandbox: Sandbox | None = None) -> TracedCase:
    """Traces a case; without one, the first that failed in the last grade, or the first of all.

    Raises:
        TritonlabError: as of ``grader_for``; or the case cannot be traced.
    """
    module, place = submission.module, submission.workspace
    if seed is not None and not SEED.fullmatch(seed := seed.lower()):
        raise invalid_seed(seed)
    with grader_for(module, sandbox) as box:
        suite = suite_of(module)
        if case is None and seed is None and place is not None:
            failed = caches.load_failures(place.mark, module.id)
            case = next((name for name in failed.cases if is_traceable(suite, name)), None)
            seed = failed.seed if case else None
        try:
            return trace_case(submission.kernel, suite, sandbox=box, case=case, seed=seed,
                              program=program, launch=launch, on_event=on_event)
        except NotTraceable as error:
            raise TritonlabError(
                sentence(str(error)), f"`{submission.typed('trace')}` draws all programs."
                if isinstance(error, NoSuchProgram)
                else f"`{submission.typed('grade')}` shows the verdict.") from error


def place_in_grid(program: str | None) -> tuple[int, ...] | None:
    """Reads the place of a program in its grid; raises TritonlabError."""
    if program is None:
        return None
    numbers = program.split(",")
    if len(numbers) > 3 or not all(number.strip().isdecimal() for number in numbers):
        raise TritonlabError(f"'{program}' is not a place in a grid.",
                             "Name one to three numbers, such as `--program 1` or "
                             "`--program 1,0,2`.")
    return tuple(map(int, numbers))


def bench(submission: Submission, *, function: str = "", target: Target | None = None,
          on_event: OnEvent | None = None, sandbox: Sandbox | None = None) -> Benchmark:
    """Times a submission beside the reference solution and torch.

    Args:
        function: the only one to be timed.
        target: predict for this GPU, even if there is one to measure on.

    Raises:
        BadCourse: the module has no hidden tests, or no solution.
        TritonlabError: as of ``grader_for``; or the module, or ``function``, has no benchmark.
    """
    module, why = submission.module, ""
    with grader_for(module, sandbox) as box, contextlib.ExitStack() as resources:
        try:
            suite = suite_of(module)
            check(module, [part.entry for part in benchmarks.benched(suite)], function)
            clock: Clock
            try:
                if target is None and on_event:
                    on_event("what the GPU reaches")
                clock = Predicted(target) if target else resources.enter_context(
                    measuring(box, module.suite))
            except NoGpu as error:
                clock, why = Predicted(detect.default_target()), str(error)
            benchmark = benchmarks.bench(submission.kernel, suite, clock, solution=module.solution,
                                         function=function, on_event=on_event, sandbox=box)
        except FileNotFoundError as error:
            raise BadCourse(f"{module.id} is not complete: {brief(str(error))}") from error
    return replace(benchmark, why=why)


def check(module: Module, names: list[str], function: str) -> None:
    """Raises TritonlabError if the module, or its function, has no benchmark."""
    if not names:
        raise TritonlabError(f"{module.id} has no benchmark, because it does not ask for "
                             "speed.", f"`tritonlab grade {module.id}` grades it.")
    if function and function not in names:
        raise TritonlabError(f"{module.id} has no benchmark of a function '{function}'. It has "
                             f"{', '.join(names)}.", "Name one of these with --function.")
