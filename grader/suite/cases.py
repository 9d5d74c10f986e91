"""The cases of a suite: what is tried, and what a performance case allows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any, Self

from grader.finding import NAMES
from grader.recording.compiled_kernel import Binary
from grader.recording.model import Recording
from grader.report import Kind
from grader.suite.inputs import Input, Size
from grader.suite.mistakes import SuiteMistake, nearest, number, texts
from grader.suite.sizes import COUNT, Drawn, Sizes, words

__all__ = ["Call", "Case", "CheckResult", "CompiledCode", "Limits", "Property", "Reading", "Tree",
           "call", "correctness", "edge", "launchable", "performance", "reads", "refuses", "sizes"]

CALL_S = 10.0  # that a call of host code may take
WIDTHS = (8, 16, 32, 64, 128)  # bits that one instruction of a thread accesses


@dataclass(frozen=True)
class CheckResult:
    """One figure that a check of a suite read off launches, shown whether the case passes or fails.

    ``wrong`` is the sentence of the finding with ``code``, empty where the figure is as asked.
    ``line`` is the line of the learner's file that the finding is about.
    """

    name: str
    value: str
    wrong: str = ""
    code: str = "T06"
    line: int | None = None


@dataclass(frozen=True)
class CompiledCode:
    """The compiled code of a case's launches, in order; ``heavy`` of those that move much.

    ``gpu`` is the title of the GPU that it was compiled for.
    """

    binaries: Sequence[Binary]
    heavy: Sequence[Binary]
    gpu: str


@dataclass(frozen=True)
class Limits:
    """The limits of a performance case. ``traffic`` is issued bytes over ``Cost.bytes``.

    ``flops`` is operations of tl.dot over ``Cost.flops``.
    ``sectors`` bounds the 32-byte sectors of any line that moves much over as few as would hold its
    bytes, access by access: what a later access finds in a cache was requested again.
    ``requests`` bounds the same for each instruction of a warp, in a case that asks for speed; the
    compiled code says which elements it accesses.
    ``programs`` bounds the programs of all launches together; a function gets the learner's
    block. Of the compiled code, ``vector`` is how many bits a thread has to load or store at once
    where much is moved, ``spills`` how many bytes a thread may spill, ``shared`` how many bytes of
    shared memory a program may take. Of the launches that move much, ``stages`` is how deep the
    pipeline has to be, as a pair also how deep it may be. With ``tensor_cores`` these have to be
    used, and with ``bulk`` what is loaded most has to come in whole tiles (by TMA). It is that for
    ``target`` where one is named, whatever the grade is for: some features, and some mistakes, show
    on one kind of GPU only. ``pass_at`` and ``stretch`` are shares of the copy bandwidth at this
    very size, or of the speed of the library's matrix product where the arithmetic takes longer
    than a copy: proved, expected or left open without a GPU.

    A limit of one module is a function of its suite: ``check`` gets the recorded call of a case
    that is run, and ``check_code`` the compiled code. Both return facts.
    """

    traffic: float | None = None
    flops: float | None = None
    sectors: float | None = None
    requests: float | None = None
    launches: int | None = None
    programs: Size | None = None
    vector: int | None = None
    spills: int | None = None
    shared: int | None = None
    stages: int | tuple[int, int] | None = None
    tensor_cores: bool = False
    bulk: bool = False
    target: str = ""
    pass_at: float | None = None
    stretch: float | None = None
    check: Callable[[Recording], Sequence[CheckResult]] | None = None
    check_code: Callable[[CompiledCode], Sequence[CheckResult]] | None = None

    def __post_init__(self) -> None:
        for name, unit in (("traffic", "issued bytes over Cost.bytes, such as 1.0"),
                           ("flops", "operations of tl.dot over Cost.flops, such as 1.0"),
                           ("sectors", "sectors over the fewest possible, such as 1.0"),
                           ("requests", "sectors of requests over the fewest, such as 1.0")):
            number("a limit", name, getattr(self, name), unit, above=True)
        for name, unit in (("launches", "a count"), ("spills", "bytes per thread"),
                           ("shared", "bytes per program: 98_304 for 96 KiB")):
            number("a limit", name, getattr(self, name), unit, whole=True)
        if not callable(self.programs):
            number("a limit", "programs", self.programs, "a count, or a function of the block",
                   whole=True)
        for name in ("pass_at", "stretch"):
            number("a limit", name, getattr(self, name), "a share of the roofline: 0.6 for 60 %",
                   most=1, above=True)
        low, high = self.stages if isinstance(self.stages, tuple) and len(self.stages) == 2 else (
            self.stages, self.stages)
        for stages in (low, high):
            number("a limit", "stages", stages, "a depth, or (least, most)", least=1, whole=True)
        if self.requests is not None and self.pass_at is None:
            raise SuiteMistake("a limit: requests are known of a case that asks for speed.",
                               "Give the case pass_at too, or limit its sectors.")
        for name in ("tensor_cores", "bulk"):
            if not isinstance(value := getattr(self, name), bool):
                raise SuiteMistake(f"a limit: {name} = {value!r} is neither True nor False.",
                                   f"Write {name}=True.")
        if self.vector is not None and self.vector not in WIDTHS:
            raise SuiteMistake(f"a limit: vector = {self.vector!r} is not a width in bits.",
                               "Write one of 8, 16, 32, 64 and 128; 16 bytes are 128 bits.")

    @property
    def of_code(self) -> bool:
        """Whether anything is asked of the compiled code."""
        return any(asked is not None and asked is not False for asked in (
            self.vector, self.spills, self.shared, self.stages, self.tensor_cores, self.bulk,
            self.check_code))


@dataclass(frozen=True)
class Tree:
    """Other files for a submission, such as trusted code in place of the learner's own package.

    ``files`` are texts by their paths; the learner's files in the folder ``instead_of`` go.
    """

    name: str
    files: Mapping[str, str]
    instead_of: str


@dataclass(frozen=True)
class Call:
    """A case of kind ``call``: the call of host code, and the check of its result.

    ``of`` is a function of ``calls.py`` beside the suite, which runs with the learner's module as
    its first argument where the learner's code runs, or else the learner's own function. ``check``
    gets the answer, as plain values, and the case's inputs; it raises AssertionError with a
    sentence, which becomes a finding with ``code``. Cases that ask the same of the same plain
    values share one answer. With ``eager`` launches run at once, under watch, and with ``watched``
    what is found about their accesses fails the case too. ``seconds`` bound the call.

    With ``trees`` the function is asked once in each of these, in processes of its own, and
    ``check`` gets a dict: name of a tree -> ``grader.processes.replies.Answer``, whose ``value`` is
    plain. ``settled`` tells of the answers in the first of them whether ``check`` refuses them
    whatever the others answer; then it may get these alone, where not all has to be told.
    """

    of: str
    check: Callable[..., None] | None = None
    code: str = "Q01"
    eager: bool = False
    watched: bool = True
    seconds: float = CALL_S
    trees: Sequence[Tree] = ()
    settled: Callable[[Mapping[str, Any]], bool] | None = None

    def __post_init__(self) -> None:
        _check_code_name(self.code)
        number("a call", "seconds", self.seconds, "how long the call may take", above=True)


@dataclass(frozen=True)
class Reading:
    """A check of the submission's files as text; no code is run.

    ``check`` gets all of them by their paths, and raises AssertionError with a sentence, which
    becomes a finding with ``code``. ``of`` says which of them, for hints.
    """

    check: Callable[[Mapping[str, str]], None]
    of: str
    code: str = "Q01"

    def __post_init__(self) -> None:
        _check_code_name(self.code)


def _check_code_name(code: str) -> None:
    if code not in NAMES:
        raise SuiteMistake(f"'{code}' is not a code.{nearest(code.upper(), NAMES)}",
                           "`tritonlab codes` lists all.")


@dataclass(frozen=True)
class Case:
    """One named run. ``name`` says in words what is tried.

    ``raises`` asks for an exception instead of a result; ``mentions`` are words that its message
    must hold. ``public`` cases are the ones that ``python kernel.py`` runs. ``advisory`` cases are
    shown and never decide. ``function`` is the learner's function that is called, where a suite has
    several; ``call`` is set where host code is asked and no kernel's result is looked at, and
    ``reading`` where files are only read. Where ``runs`` is false, the call is recorded, which
    checks its grids, and no kernel runs. With ``sizes`` it stands for a run at each size drawn.
    """

    name: str
    kind: Kind
    inputs: tuple[Any, ...] = ()
    limits: Limits | None = None
    raises: type[Exception] | None = None
    mentions: tuple[str, ...] = ()
    launches: int | None = None  # exactly so many, where the contract says so
    public: bool = False
    advisory: bool = False
    function: str = ""
    call: Call | None = None
    reading: Reading | None = None
    runs: bool = True
    sizes: Sizes | None = None

    def __post_init__(self) -> None:
        owner = f"the case '{self.name}'"
        if not isinstance(self.name, str):
            raise SuiteMistake(f"a case has {self.name!r} for a name, which is not a text.",
                               'Begin with a name in words, such as "4 x 128".')
        if self.raises is not None and not (isinstance(self.raises, type)
                                            and issubclass(self.raises, Exception)):
            raise SuiteMistake(f"{owner}: raises = {self.raises!r} is not an exception class.",
                               "Write raises=ValueError, say, without quotes.")
        number(owner, "launches", self.launches, "the exact count", whole=True)
        for given in self.inputs:
            if isinstance(given, list | tuple) and any(isinstance(one, Input) for one in given):
                raise SuiteMistake(f"{owner} has its inputs in a {type(given).__name__}.",
                                   "Pass them one by one, or write * before it.")

    def at(self, size: Drawn) -> Self:
        """The run at one of the drawn sizes."""
        assert self.sizes is not None
        return replace(self, name=f"{self.name}: {words(size)}", sizes=None,
                       inputs=tuple(self.sizes.make(**size)))

    @property
    def about(self) -> str:
        """The function that the case calls, or what it asks or reads; hints are chosen by it."""
        return self.function or (self.call.of if self.call
                                 else self.reading.of if self.reading else "")

    @property
    def launches_once(self) -> bool:
        """Whether it is one call of the learner's function, which launches kernels."""
        return self.kind is not Kind.PROPERTY and not (self.raises or self.call or self.reading)

    @property
    def follows_block(self) -> bool:
        """Whether a size or a limit is a function of the learner's own block."""
        sizes = [size for spec in self.inputs for size in getattr(spec, "sizes", ())]
        return any(map(callable, [*sizes, self.limits and self.limits.programs]))


def correctness(name: str, *inputs: Any, public: bool = False, launches: int | None = None) -> Case:
    return Case(name, Kind.CORRECTNESS, inputs, public=public, launches=launches)


def edge(name: str, *inputs: Any, public: bool = False, launches: int | None = None,
         advisory: bool = False) -> Case:
    return Case(name, Kind.EDGE, inputs, public=public, launches=launches, advisory=advisory)


def launchable(name: str, *inputs: Any) -> Case:
    """The launches are recorded and not run: every grid must be within the limits of CUDA.

    For sizes that are cheap to launch and would take long to interpret.
    """
    return Case(name, Kind.EDGE, inputs, runs=False)


def sizes(make: Callable[..., Sequence[Any]], *, count: int = COUNT, call: Call | None = None,
          name: str = "sizes drawn anew", **dimensions: Sequence[Any]) -> Case:
    """A case at ``count`` sizes that each grade draws anew; what fails is shrunk and named.

    ``sizes(lambda rows, columns: (rand(rows, columns),), rows=(1, 9), columns=(1, 5_000))``: two
    numbers are the lowest and the highest size; anything else, such as dtypes, is chosen from. All
    that can be drawn has to be within the module's contract, and small: a case is judged in a few
    milliseconds. With ``call`` the inputs are those of host code.
    """
    ranges = {key: (values[0], values[1]) for key, values in dimensions.items()
              if len(values) == 2 and all(type(value) is int for value in values)}
    for key, (low, high) in ranges.items():
        if not 0 <= low <= high:
            raise SuiteMistake(f"the sizes of {key} are {low} to {high}.",
                               "Write the lowest and the highest size, both from 0 on.")
    choices = {key: tuple(values) for key, values in dimensions.items() if key not in ranges}
    return Case(name, Kind.PROPERTY, call=call, sizes=Sizes(make, ranges, choices, count))


def refuses(name: str, *inputs: Any, raises: type[Exception], mentions: Sequence[str] = (),
            public: bool = False) -> Case:
    """The function must raise ``raises`` (or a subclass) before anything is launched."""
    texts(f"the case '{name}'", "mentions", mentions)
    return Case(name, Kind.EDGE, inputs, raises=raises, mentions=tuple(mentions), public=public)


def performance(name: str, *inputs: Any, **limits: Any) -> Case:
    """A case that runs whole and is counted; with ``pass_at``, judged at its size without running.

    ``limits`` are the fields of ``Limits``.

    Raises:
        ValueError: a GPU is named, and its speed asked for: a clock has only the one that is there.
    """
    asked = Limits(**limits)
    if asked.target and asked.pass_at is not None:
        raise SuiteMistake(f"the case '{name}' names a target and asks for speed.",
                           "Remove target= or pass_at=: a clock has only the GPU that is there.")
    return Case(name, Kind.PERFORMANCE, inputs, limits=asked)


def call(name: str, of: str, *inputs: Any, check: Callable[..., None] | None = None,
         raises: type[Exception] | None = None, mentions: Sequence[str] = (), public: bool = False,
         advisory: bool = False, **how: Any) -> Case:
    """A case that calls host code and judges its answer by ``check``; ``how``: fields of ``Call``.

    A check whose ``code`` begins with T speaks of what the answer costs: a performance case.

    Raises:
        ValueError: the case asks for neither an answer nor an exception.
    """
    if (check is None) == (raises is None):
        raise SuiteMistake(f"the case '{name}' has {'neither' if check is None else 'both'} "
                           "check= and raises=.", "Give one of them.")
    texts(f"the case '{name}'", "mentions", mentions)
    asked = Call(of, check, **how)
    return Case(name, _kind_of(asked.code), inputs, raises=raises, mentions=tuple(mentions),
                public=public, advisory=advisory, call=asked)


def reads(name: str, of: str, *, check: Callable[[Mapping[str, str]], None],
          code: str = "Q01") -> Case:
    """The files of the submission are looked at as texts; the arguments are as in ``Reading``.

    A check whose ``code`` begins with T speaks of how the work is done: a performance case.
    """
    return Case(name, _kind_of(code), reading=Reading(check, of, code))


def _kind_of(code: str) -> Kind:
    """Returns the kind of a host or text case by the code of its findings."""
    return Kind.PERFORMANCE if code.startswith("T") else Kind.CALL


@dataclass(frozen=True)
class Property(Case):
    """A ``test_*`` function of a suite: gets a ``submission``, asserts a law of the result.

    ``functions`` are those of the learner's that it calls, where a suite has several.
    """

    kind: Kind = Kind.PROPERTY
    test: Callable[..., None] = field(kw_only=True)
    functions: frozenset[str] = frozenset()
    follows_block = True

    @property
    def about(self) -> str:
        """The function that the law is about, where it is one; hints are chosen by it."""
        return next(iter(self.functions)) if len(self.functions) == 1 else ""


def names_in(code: CodeType) -> frozenset[str]:
    """The names and attributes that a function's code and the functions inside of it mention."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(code.co_names).union(*map(names_in, inner))
