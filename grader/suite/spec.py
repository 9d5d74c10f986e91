"""The vocabulary of a hidden test suite: inputs, cases, cost, tolerance, mutants, the suite."""

import gc
import hashlib
import importlib.util
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from msgspec import Meta

from grader.report import Kind
from grader.submission.source import KERNEL
from grader.suite.cases import Case, Property, names_in
from grader.suite.mistakes import (
    MODULE,
    REFERENCE,
    SuiteMistake,
    explained,
    number,
    place,
    place_of,
    texts,
)
from grader.suite.mutants import Mutant, read_mutants, read_toml

if TYPE_CHECKING:  # a course is listed without loading torch
    import torch

__all__ = ["EXACT", "FLOAT32", "KAPPA", "TENSOR_CORES", "Amplitude", "Bench", "Cost", "Function",
           "Suite", "Tolerance", "digest", "load", "sibling"]

# How a result is compared, and what a job costs at least.


@dataclass(frozen=True)
class Amplitude:
    """The effect of rounding on each element of a result; the rule is in
    ``grader.judge.compare``.

    ``pointwise`` is the amplitude of point-wise steps, ``reduced`` the formula with absolute values
    inside the reduction of ``length`` terms; float64 tensors of the result's shape. ``middle`` is
    the amplitude of an intermediate that may be rounded to the input's dtype.
    """

    pointwise: "torch.Tensor | float" = 0.0
    reduced: "torch.Tensor | float" = 0.0
    length: int = 1
    middle: "torch.Tensor | float" = 0.0


KAPPA = 4.0  # κ: how far an error may pass its amplitude
FLOAT32 = 2.0**-24  # unit roundoff of float32 arithmetic outside tensor cores
TENSOR_CORES = 2.0**-22  # of float32 sums in tensor cores, and of products in three TF32 parts


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of a result; the rule is in ``grader.judge.compare``.

    ``amplitude`` maps the inputs to an ``Amplitude``, or to one for each result; None asks for the
    correctly rounded exact one. ``arithmetic`` is the unit roundoff of the arithmetic asked for,
    and ``on_gpu`` that of what a GPU has in its place, where that is coarser than the CPU's.
    ``products`` are the positions of the inputs that are multiplied as matrices. With ``tf32``
    float32 ones may be rounded to TF32 there; without, a result that is right for rounded inputs
    only is told as such. Where ``leaning``, near results may all lean one way.
    """

    amplitude: Callable[..., Amplitude | Sequence[Amplitude | None]] | None = None
    arithmetic: float = FLOAT32
    products: tuple[int, ...] = ()
    tf32: bool = False
    on_gpu: float = 0.0
    leaning: bool = False

    def of_a_gpu(self) -> Self:
        """For results of a GPU, which approximates roots and quotients, all of them alike."""
        return replace(self, arithmetic=max(self.arithmetic, self.on_gpu), leaning=True)


EXACT = Tolerance()
_UNSTATED = Tolerance()  # a suite that is loaded has to choose


@dataclass(frozen=True)
class Cost:
    """The least that the job needs: ``bytes`` to read and write, ``flops`` to compute."""

    bytes: Annotated[int, Meta(gt=0)]
    flops: Annotated[int, Meta(ge=0)] = 0


@dataclass(frozen=True)
class Bench:
    """A benchmark of ``tritonlab bench``: one function on inputs of growing size.

    ``axis`` names what grows; ``at`` is what stays the same, such as dtype and rows. ``inputs``
    maps each of ``sizes`` to what the function is called with, as in a case. ``peer`` is torch's
    own way on a GPU, called ``peer_name``; without one, that of the function.
    """

    axis: str
    sizes: tuple[int, ...]
    inputs: Callable[[int], tuple[Any, ...]]
    at: str = "float32"
    peer: Callable[..., Any] | None = None
    peer_name: str = "the same operations, one by one"


# The suite


_GROUPS = ({Kind.CORRECTNESS}, {Kind.CALL}, {Kind.EDGE}, {Kind.PROPERTY}, {Kind.PERFORMANCE})
_GROUPS_OF_SEVERAL = ({Kind.CORRECTNESS, Kind.CALL, Kind.EDGE}, {Kind.PROPERTY}, {Kind.PERFORMANCE})


def _not_given(*_: Any) -> Any:
    raise ValueError("the suite gives no reference, or no cost, for a function that it tries")


@dataclass(frozen=True)
class Function:
    """One function of the submission: how it is called, what it has to give, and its cases.

    ``entry`` is its name, ``parameters`` those of its parameters in order. Inputs of a case that go
    beyond them are handed over by the names in ``keyword_only``. ``reference`` maps the same inputs
    to the float64 result (integers stay integers), or to a tuple of them where the function returns
    several, called ``result_names`` in messages. A result must have the reference's shape and
    ``result_dtype``: one for all or one for each, None standing for the first input's, or what a
    function says of the inputs.
    ``contiguous_result`` asks for row-major results; ``duplicate_writes`` allows two programs to
    store the same element; of results that may start ``zeroed``, elements may stay the zeros of a
    host fill, such as bins that nothing falls into. Where results need not be ``reproducible``, the
    order of programs may change how they are rounded, as it does for sums by atomics; in any order
    they have to be right.
    Where moving or casting elements is the task itself, ``moves="deny"`` takes copies away from
    host code.
    ``peer`` is torch in the inputs' own dtype, ``reversed_peer`` the same with the reduction the
    other way round (None where nothing is reduced): two right answers for
    ``grader.judge.discrimination``. ``bench`` says on which sizes ``tritonlab bench`` times it.

    ``wrong_formulas`` are what known mistakes compute, in the form of ``reference``, by what a
    message calls it ("what a variance over n_cols - 1 gives"). A wrong result that equals one says
    so, and a mutant's ``sign`` can ask for it.

    Where a case limits programs, one that stores nothing is a fault in every case: the contract
    ``counts_programs``, also of what is left when that case is taken out.

    A function that works ``in_place`` makes no result: it changes the parameters of these names,
    and what they hold after the call is what ``reference`` gives, in this order. Nothing else of
    its arguments may change, nor what lies between the elements of a view. It returns None, or
    those very tensors where it ``returns_self``. Trials of its autotuners have to leave no trace.

    Where what counts takes more than one call, such as a result and its gradients, ``drives`` names
    the learner's function, and ``entry`` one of ``calls.py`` beside the suite that gets the
    learner's module first and then the parameters: it makes the calls, all of which are recorded,
    and what it returns is judged like the result of the learner's own function.
    """

    entry: str = ""
    parameters: tuple[str, ...] = ()
    reference: Callable[..., Any] = _not_given
    tolerance: Tolerance = _UNSTATED
    cost: Callable[..., Cost] = _not_given
    cases: Sequence[Case] = ()
    keyword_only: tuple[str, ...] = ()
    result_names: tuple[str, ...] = ()
    result_dtype: (str | Sequence[str | None] | Callable[..., str | Sequence[str]]
                   | None) = None
    contiguous_result: bool = False
    duplicate_writes: bool = False
    zeroed: bool = False
    reproducible: bool = True
    moves: Literal["allow", "deny"] = "allow"
    peer: Callable[..., Any] | None = None
    reversed_peer: Callable[..., Any] | None = None
    bench: Bench | None = None
    wrong_formulas: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    counts_programs: bool = False
    in_place: tuple[str, ...] = ()
    returns_self: bool = False
    drives: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.entry, str):
            raise SuiteMistake(f"entry is a {type(self.entry).__name__}, not a text.",
                               "Write the name of the learner's function, entry=\"row_max\", and "
                               "cases=[…] by name.")
        owner = f"the function `{self.entry}`" if self.entry else "the suite"
        for name in ("parameters", "keyword_only", "result_names", "in_place"):
            texts(owner, name, getattr(self, name))
        if not isinstance(self.tolerance, Tolerance):
            raise SuiteMistake(f"{owner}: tolerance = {self.tolerance!r} is not a Tolerance.",
                               f"Write tolerance=EXACT, or Tolerance(amplitude): {REFERENCE}.")
        for name in ("reference", "cost", "peer", "reversed_peer"):
            if not callable(value := getattr(self, name)) and value is not None:
                raise SuiteMistake(f"{owner}: {name} = {value!r} is not a function.",
                                   f"Write {name}=lambda …: …, a function of the inputs.")
        if isinstance(self.cases, Case):
            raise SuiteMistake(f"{owner}: cases is one case, not a list.", "Write cases=[…].")
        for element in enumerate(self.cases):
            if isinstance(element[1], list | tuple):
                raise SuiteMistake(f"{owner}: cases contains a {type(element[1]).__name__}.",
                                   "Write * before what returns several cases, such as "
                                   "*predictions(…).", element=(element[0], len(self.cases)))
            if not isinstance(element[1], Case):
                raise SuiteMistake(f"{owner}: cases contains {element[1]!r}, which is not a case.",
                                   "Write correctness(…), edge(…), refuses(…) or another one of "
                                   f"{REFERENCE}.", element=(element[0], len(self.cases)))
        if any(case.limits and case.limits.programs is not None for case in self.cases):
            object.__setattr__(self, "counts_programs", True)

    @property
    def called(self) -> str:
        """The learner's function that is called, by itself or by a driver of the suite."""
        return self.drives or self.entry

    @property
    def named_inputs(self) -> tuple[str, ...]:
        """The names of a case's inputs, in order."""
        return (*self.parameters, *self.keyword_only)

    def in_place_at(self) -> tuple[int, ...]:
        """The positions of the parameters that ``in_place`` names, in its order."""
        return tuple(map(self.parameters.index, self.in_place))

    def result_dtypes(self, first: str, count: int, inputs: Sequence[Any] = ()) -> list[str]:
        """The dtype of each of ``count`` results; ``first`` is that of the first input."""
        asked = self.result_dtype(*inputs) if callable(self.result_dtype) else self.result_dtype
        if asked is None or isinstance(asked, str):
            return [asked or first] * count
        return [name or first for name in asked[:count]]


AMPERE = (8, 0)  # compute capability


@dataclass(frozen=True)
class Suite(Function):
    """The test suite of one module.

    A suite is the contract of one function, or names several ``functions``; then its own ``cases``
    are calls of host code. ``host`` are further functions with their parameters, which calls use.
    ``blanks`` is the number of blanks that the exercise starts with, and ``marker`` the word in
    comments that number its places: TODO, or DECIDE where the exercise works and is to be improved.

    A submission may have further ``files`` beside its kernel.py, named by their paths. They are
    read, copied and imported together, and its kernels are taken from ``kernel_file``. Where host
    code registers operators or has torch's compiler make graphs, the suite ``compiles_graphs``:
    that compiler is imported before workers are forked: it takes a second, and wants files that
    they may not make. Where its kernels need a ``capability``, such as (8, 9), a GPU with less is
    not asked.
    """

    blanks: int = 0
    marker: Literal["TODO", "DECIDE"] = "TODO"
    functions: Sequence[Function] = ()
    files: tuple[str, ...] = ()
    kernel_file: str = KERNEL
    compiles_graphs: bool = False
    capability: tuple[int, int] = (0, 0)
    host: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    # filled in by ``load``
    FILLED_BY_LOAD: ClassVar = ("name", "properties", "mutants", "calls", "exercise", "solution",
                                "other_solutions", "sha256", "counts_programs", "public_only")
    name: str = ""
    properties: tuple[Property, ...] = ()
    mutants: tuple[Mutant, ...] = ()
    calls: str = field(default="", repr=False)  # the text of calls.py beside the suite
    exercise: str = field(default="", repr=False)  # what learners begin with, where it is known
    solution: str = field(default="", repr=False)  # the file with its kernels, where it is known
    # path -> text of the solution's further files
    other_solutions: Mapping[str, str] = field(default_factory=dict, repr=False)
    sha256: str = ""
    public_only: bool = False  # the hidden cases were left out, as in a build for students

    def __post_init__(self) -> None:
        super().__post_init__()
        number("the suite", "blanks", self.blanks, "a count, as in the exercise", whole=True)
        texts("the suite", "files", self.files)
        if self.marker not in ("TODO", "DECIDE"):
            raise SuiteMistake(f"the suite: marker = {self.marker!r} is neither TODO nor DECIDE.",
                               'Write marker="DECIDE" for an exercise that is right and slow.')
        one = self.functions if isinstance(self.functions, Function) else next(
            (one for one in self.functions if not isinstance(one, Function)), None)
        if one is not None:
            raise SuiteMistake("the suite: functions is not a tuple of Functions.",
                               "Write functions=(Function(…),), with a comma; cases belong to "
                               "cases=[…].")

    @property
    def solutions(self) -> dict[str, str]:
        """Path -> text of the solution's files, where they are known."""
        return {self.kernel_file: self.solution, **self.other_solutions}

    @cached_property
    def least_capability(self) -> tuple[int, int]:
        """The compute capability of a GPU that the suite can be judged on.

        Before Ampere, Triton neither uses tensor cores nor loads ahead.
        """
        limits = [case.limits for case in self.all_cases if case.limits]
        of_ampere = any((one.tensor_cores or one.stages) and not one.target for one in limits)
        return max(self.capability, AMPERE if of_ampere else (0, 0))

    @cached_property
    def parts(self) -> "tuple[Suite, ...]":
        """A suite for each function, its cases named after it, and one for calls of host code."""
        if not self.functions:
            return (self,)
        parts = [replace(self, functions=(), **{
            **{one.name: getattr(function, one.name) for one in fields(Function)},
            "cases": tuple(replace(case, name=f"{function.entry}: {case.name}",
                                   function=function.entry) for case in function.cases),
        }) for function in self.functions]
        return (*parts, replace(self, functions=())) if self.cases else tuple(parts)

    @property
    def signatures(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Parameters and keyword-only ones of every function that the submission has to define."""
        return {**{part.entry: (part.parameters, part.keyword_only)
                   for part in self.parts if part.entry and not part.drives},
                **{name: (parameters, ()) for name, parameters in self.host.items()}}

    @property
    def all_cases(self) -> list[Case]:
        """Those of all functions, as the suite lists them."""
        return [case for part in self.parts for case in part.cases]

    def ordered(self, public_only: bool = False, only: str = "") -> list[Case]:
        """The cases in the order in which they are judged: the simplest group first.

        Of several functions, one after the other; what they cost comes when all are right.

        Args:
            public_only: leave out all that is hidden.
            only: the name of the one case that is meant.
        """
        cases = [case for part in self.parts for case in _by_group(part.cases)
                 if case.public or not public_only]
        properties = [] if public_only else self.properties
        fixed = [case for case in cases if not case.sizes]  # their failures come again
        drawn = [case for case in cases if case.sizes]
        groups = _GROUPS_OF_SEVERAL if self.functions else _GROUPS
        return [case for case in _by_group([*fixed, *properties, *drawn], groups)
                if only in ("", case.name)]


def _by_group(cases: Sequence[Case], groups: Sequence[Collection[Kind]] = _GROUPS) -> list[Case]:
    """In the order of the groups, and else as they are.

    What host code answers about cost comes before what kernels cost, which takes the compiler.
    """
    def place(case: Case) -> tuple[int, bool]:
        number = next(n for n, group in enumerate(groups) if case.kind in group)
        return number, case.kind is Kind.PERFORMANCE and case.call is None

    return sorted(cases, key=place)


def load(path: Path, exercise: Path | None = None, solution: Path | None = None) -> Suite:
    """Loads a suite from ``…/suite.py``, with its ``test_*`` properties and the mutants beside it.

    One that was loaded before has the same cases again, unless one of its files has changed.
    ``exercise`` is the folder of what learners begin with: a line whose comment they removed
    belongs to the place that it had there. ``solution`` is the folder of the solution, with which
    a failing submission is compared.

    Raises:
        FileNotFoundError: there is no such file.
        SuiteMistake: a file cannot be read or imported, or says what no suite can.
    """
    suite = _loaded.get(path) if path.is_file() else None
    if suite is None or suite.sha256 != digest(path):
        try:
            suite = _loaded[path] = _load(path)
        except (SuiteMistake, FileNotFoundError):
            raise
        except Exception as error:  # of values that no check names
            raise explained(error, path) from error
    if exercise:
        suite = replace(suite, exercise=_text(exercise / suite.kernel_file))
    if solution is None:
        return suite
    others = {name: _text(solution / name) for name in (KERNEL, *suite.files)
              if name != suite.kernel_file}
    return replace(suite, solution=_text(solution / suite.kernel_file), other_solutions=others)


_loaded: dict[Path, Suite] = {}
_IDENTITY = "identity.toml"


def _load(path: Path) -> Suite:
    module = _module(f"{MODULE}{path.parent.name}", path)
    suite = getattr(module, "suite", None)
    if not isinstance(suite, Suite):
        raise SuiteMistake("The file defines no `suite`.", "Write suite = Suite(…).", place(path))
    calls = path.with_name("calls.py")
    properties = tuple(
        Property(name.removeprefix("test_").replace("_", " "), test=value,
                 functions=names_in(value.__code__) & {f.entry for f in suite.functions})
        for name, value in vars(module).items() if name.startswith("test_") and callable(value))
    loaded = replace(
        suite, name="/".join(path.parent.parts[-2:]), properties=properties,
        mutants=read_mutants(path.with_name("mutants.toml")), sha256=digest(path),
        calls=calls.read_text(encoding="utf-8") if calls.exists() else "")
    for one in properties:
        if one.test.__code__.co_argcount != 1:
            raise SuiteMistake(f"the property '{one.name}' does not have one parameter.",
                               "Write def test_…(submission).", place_of(one.test))
    _check(loaded, path)
    return loaded


def _check(suite: Suite, path: Path) -> None:
    """Refuses a suite that lacks what its cases need, or whose cases share a name."""
    text = path.read_text(encoding="utf-8")

    def mistake(cause: str, cure: str, pattern: str, last: bool = False) -> SuiteMistake:
        lines = [number for number, line in enumerate(text.splitlines(), 1)
                 if re.search(pattern, line)]
        return SuiteMistake(cause, cure, place(path, lines[-last] if lines else None))

    names = [case.name for case in suite.ordered()]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise mistake(f"Several cases are called '{twice}'.", "Give each its own name.",
                      re.escape(twice.rpartition(": ")[2]), last=True)
    for part in suite.parts:
        compared = [case for case in part.cases if case.call is None and case.reading is None
                    and not case.raises and case.runs]
        head = f"`{part.entry}`" if part.entry else "The suite"
        where = rf"""entry\s*=\s*["']{part.entry}["']|Function\(\s*["']{part.entry}["']|suite ="""
        if part.entry and compared and part.reference is _not_given:
            raise mistake(f"{head} has no reference.", "Write reference=lambda …: the exact result "
                          "in float64.", where)
        if part.entry and compared and part.tolerance is _UNSTATED:
            raise mistake(f"{head} has no tolerance.", "Write tolerance=EXACT for a result that is "
                          f"rounded once, or Tolerance(amplitude): {REFERENCE}.", where)
        if part.cost is _not_given and any(
                case.limits and any(one is not None for one in (
                    case.limits.traffic, case.limits.flops, case.limits.pass_at))
                for case in part.cases):
            raise mistake(f"{head} has no cost, and a case limits its bytes, operations or speed.",
                          "Write cost=lambda …: Cost(bytes=…).", where)
        for case in compared:
            count, most = len(case.inputs), len(part.named_inputs)
            if part.entry and count > most and case.sizes is None:
                raise mistake(f"The case '{case.name}' has {count} inputs, {head} takes {most}.",
                              "Correct the inputs, or parameters=.",
                              re.escape(case.name.rpartition(": ")[2]))


def _text(path: Path) -> str:
    """An exercise that is not there tells nothing; nor does one that cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def sibling(suite: str, name: str) -> ModuleType:
    """Another file of a suite, ``name.py``; ``suite`` is the ``__file__`` of who asks for it.

    Raises:
        FileNotFoundError: there is no such file.
    """
    path = Path(suite).with_name(f"{name}.py")
    return _module(f"{MODULE}{path.parent.name}_{name}", path)


def _module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"There is no suite at {path}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    first = "torch" not in sys.modules and gc.isenabled()
    if first:
        gc.disable()  # next to nothing of what torch's import makes is garbage
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise explained(error, path) from error
    finally:
        if first:
            gc.freeze()
            gc.enable()
    return module


def digest(path: Path) -> str:
    """Identity of a suite, which journals and certificates keep: a SHA-256.

    It is the digest of the files, unless ``identity.toml`` beside the suite gives the files with
    this digest (``content``) the identity that they had before a change of form (``tests``).
    """
    content = content_digest(path)
    try:
        identity = read_toml(path.with_name(_IDENTITY))
    except FileNotFoundError:
        return content
    if not isinstance(identity.get("tests"), str) or not isinstance(identity.get("content"), str):
        raise SuiteMistake("The file lacks `content` or `tests`.", "Write both as texts, or remove "
                           "the file.", place(path.with_name(_IDENTITY)))
    return str(identity["tests"]) if identity["content"] == content else content


def content_digest(path: Path) -> str:
    """SHA-256 of ``suite.py`` and the files beside and below it, without ``identity.toml``."""
    first = [path, path.with_name("mutants.toml"), path.with_name("calls.py")]
    others = (file for file in sorted(path.parent.rglob("*")) if file.is_file()
              and file not in first and file.name != _IDENTITY and "__pycache__" not in file.parts)
    files = [path, *filter(Path.exists, first[1:]), *others]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
