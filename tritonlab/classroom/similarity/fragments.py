"""Statements and comments of a submission as short sequences of tokens, robust to disguise."""

import builtins
import itertools
import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

LENGTH = 6  # tokens of a gram of code
WORDS = 4  # of a gram of a comment
MOST_TOKENS = 10_000  # of one submission that are read

# What is not closed ends with its line or with the text: each alternative matches where it begins,
# so one pass is enough, and text that is not Python has tokens too.
_TOKEN = re.compile(
    r"""(?P<space>[ \t\f\r]+|\\\r?\n)|(?P<newline>\n)|(?P<comment>\#[^\n]*)"""
    r"""|(?P<string>[rbfuRBFU]{0,2}(?:\'\'\'(?:\\.|[^\\])*?(?:\'\'\'|\Z)"""
    r"""|\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)|'(?:\\.|[^\\\n'])*'?|"(?:\\.|[^\\\n"])*"?))"""
    r"""|(?P<number>(?:0[xX][\da-fA-F_]+|\.?\d[\d_]*\.?[\d_]*(?:[eE][-+]?\d+)?)j?)"""
    r"""|(?P<name>[^\W\d]\w*)|(?P<operator>\*\*=?|//=?|>>=?|<<=?|[-+*/%@&|^<>=!:]=|->|.)""",
    re.DOTALL)
_QUOTES = re.compile(r"""^[rbfuRBFU]*('''|\"\"\"|'|")|('''|\"\"\"|'|")$""")
_PLACE = re.compile(r"\{[^{}]*\}")  # of an f-string: it contains names
_WORD = re.compile(r"[^\W_]+")
_KEPT = frozenset((*keyword.kwlist, *dir(builtins)))
_LOCAL = "name"  # stands for every name that a submission may choose
_DROPPED = frozenset("(),;.")  # formatting adds or removes them; an attribute keeps its dot


@dataclass(frozen=True)
class Unit:
    """One statement, comment or docstring: its grams as hashes, each with its place in the text."""

    grams: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True)
class Fragments:
    """The statements of a text, its comments and docstrings, and the names that it chooses."""

    code: tuple[Unit, ...] = ()
    prose: tuple[Unit, ...] = ()
    names: frozenset[str] = frozenset()
    tokens: int = 0  # equal for texts that differ only by comments and white space

    @property
    def shape(self) -> int:
        """Equal for texts whose statements differ only by names, formatting and order."""
        return hash(tuple(sorted(hash(unit.grams) for unit in self.code)))


@dataclass
class _Reading:
    """The tokens of one pass over a text, by statement."""

    statements: list[list[tuple[str, str, int, int]]] = field(default_factory=list)
    prose: list[tuple[str, int]] = field(default_factory=list)
    parameters: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)


def read(text: str) -> Fragments:
    """Splits a text into statements and comments, and these into grams.

    A gram is a run of ``LENGTH`` tokens of one statement, or the whole of a shorter one. It does
    not depend on the names that the text chooses, nor on formatting, quotes, parentheses, comments
    and the order of statements. A gram of a comment is a run of ``WORDS`` words.
    """
    reading = _scan(text)
    names: set[str] = set()
    code = []
    for statement in reading.statements:
        tokens, starts, ends = [], [], []
        for token, start, end in _normal(statement, reading, names):
            tokens.append(token)
            starts.append(start)
            ends.append(end)
        if tokens:
            code.append(_unit(tokens, starts, ends, LENGTH))
    prose = []
    for comment, at in reading.prose:
        words = [*_WORD.finditer(comment)]
        if words:
            prose.append(_unit([word[0].lower() for word in words],
                               [at + word.start() for word in words],
                               [at + word.end() for word in words], WORDS))
    return Fragments(tuple(code), tuple(prose), frozenset(names), hash(tuple(
        token for statement in reading.statements for _, token, _, _ in statement)))


def _unit(tokens: Sequence[str], starts: Sequence[int], ends: Sequence[int], length: int) -> Unit:
    count = max(1, len(tokens) - length + 1)
    return Unit(tuple(hash(tuple(tokens[at:at + length])) for at in range(count)),
                tuple(starts[:count]),
                tuple(ends[min(at + length, len(tokens)) - 1] for at in range(count)))


def _scan(text: str) -> _Reading:
    """Splits a text into tokens, and these into statements."""
    reading = _Reading()
    statement: list[tuple[str, str, int, int]] = []
    depth = count = 0

    def end_statement() -> None:
        nonlocal statement
        if statement and all(kind == "string" for kind, *_ in statement):
            reading.prose += [(token, start) for _, token, start, _ in statement]  # a docstring
        elif statement:
            reading.statements.append(statement)
            _note_definitions(statement, reading)
        statement = []

    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        if kind == "space":
            continue
        if kind == "comment":
            reading.prose.append((token, match.start()))
        elif kind == "newline" or (token == ";" and not depth):
            if not depth:
                end_statement()
        else:
            if kind == "operator":
                if token in "([{":
                    depth += 1
                elif token in ")]}":
                    depth = max(0, depth - 1)
            statement.append((str(kind), token, match.start(), match.end()))
            # A bracket that is never closed ends before the next definition.
            if depth and token in ("def", "class", "import") and (
                    text.rfind("\n", 0, match.start()) + 1 == match.start()):
                last = statement.pop()
                end_statement()
                statement, depth = [last], 0
            count += 1
            if count == MOST_TOKENS:
                break
    end_statement()
    return reading


def _note_definitions(statement: list[tuple[str, str, int, int]], reading: _Reading) -> None:
    """Remembers the parameters of a function, or what the names of an import stand for."""
    tokens = [token for _, token, _, _ in statement]
    if "def" in tokens[:2]:
        reading.parameters |= {
            one for before, one in itertools.pairwise(tokens)
            if before in ("(", ",", "*", "**")}
    elif tokens[0] in ("import", "from"):
        line = " ".join(tokens).replace(" . ", ".")
        package, _, rest = line.removeprefix("from ").partition(" import ") \
            if tokens[0] == "from" else ("", "", line.removeprefix("import "))
        for item in rest.strip("() ").split(","):
            name, _, alias = item.strip().partition(" as ")
            if package or alias:
                reading.aliases[alias or name] = f"{package}.{name}".strip(".")
            else:
                top = name.partition(".")[0]
                reading.aliases[top] = top


def _normal(statement: list[tuple[str, str, int, int]], reading: _Reading,
            names: set[str]) -> Iterator[tuple[str, int, int]]:
    """Yields the tokens of a statement without what a disguise changes; collects names."""
    imports = statement[0][1] in ("import", "from")
    depth, before = 0, ""
    joined, begin = "", -1  # of strings side by side
    for place, (kind, token, start, end) in enumerate(statement):
        previous, before = before, token
        if kind == "operator":
            depth += (token in "([{") - (token in ")]}")
            if token not in _DROPPED:
                yield token, start, end
        elif kind == "string":
            joined += _PLACE.sub("{}", _QUOTES.sub("", token))
            begin = start if begin < 0 else begin
            if place + 1 == len(statement) or statement[place + 1][0] != "string":
                yield joined, begin, end
                joined, begin = "", -1
        elif kind == "number":
            yield _number(token), start, end
        elif previous == ".":
            yield f".{token}", start, end
        elif token in reading.aliases:
            yield reading.aliases[token], start, end
        elif token in _KEPT or imports:
            yield token, start, end
        elif depth and token not in reading.parameters and place + 1 < len(statement) and \
                statement[place + 1][1] == "=":
            yield token, start, end  # a keyword of a function of others
        else:
            names.add(token)
            yield _LOCAL, start, end


@lru_cache(maxsize=4096)
def _number(token: str) -> str:
    """Returns one spelling of a number."""
    try:
        return str(int(token, 0))
    except ValueError:
        pass
    try:
        return repr(float(token))
    except ValueError:
        return token
