"""The product speaks the field's English: no word of the list that has a better one."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# File -> patterns that it may still use.
ALLOWED: dict[str, frozenset[str]] = {}
_BRITISH = (
    "analyse|analysed|behaviour|behaviours|catalogue|centre|centres|centred|colour|colours|"
    "coloured|defence|favour|favourite|fibre|flavour|grey|honour|initialise|initialised|"
    "labelled|labelling|labour|licence|metre|minimise|maximise|maximised|modelled|modelling|"
    "neighbour|neighbours|neighbourhood|normalise|normalised|optimise|optimised|optimiser|"
    "optimisation|organise|organised|parallelise|parallelised|programme|quantise|quantised|"
    "quantisation|recognise|recognised|serialise|serialised|specialise|specialised|summarise|"
    "summarised|synchronise|synchronised|travelled|utilise|vectorise|vectorised|whilst")
PATTERNS = {
    "is no": r"(?<!\bthere )\bis no (?!longer\b|more\b|other\b|such\b)",
    "neighbouring": r"\bneighbou?ring (?:lanes?|elements?|addresses|threads?)\b",
    "multiprocessor": r"(?<!streaming )\bmultiprocessors?\b(?! =)",
    "copy engine": r"\bcopy engines?\b",
    "processor": r"\b(?:on|by|than|from|the|a) processors?\b",
    "laws": r"\blaws\b",
    "nobody wrote": r"\bnobody (?:wrote|defined)\b|\bwhat came of it\b|\bcomes? of it\b",
    "lane of a block": r"\bmasked lanes?\b|\blanes? (?:of|in) (?:a|the|every) (?:block|tile)\b|"
                       r"\blanes that are masked\b",
    "turns": r"\bturns of (?:the )?programs\b|\brounds of (?:the )?programs\b",
    "intensity": r"\boperations per byte\b|\bbytes per product\b",
    "a learner's way": r"\byour way so far\b|\ba learner's way\b",
    "British spelling": rf"\b(?:{_BRITISH})\b",
}
PROSE = {tokenize.COMMENT, tokenize.STRING,
         getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}  # a token of its own since 3.12
# Links, code, and places in format strings.
MARKUP = re.compile(r"https?://\S+|`[^`\n]*`|\{[^{}\n]*\}")


def english(path: Path) -> str:
    """The text of a file; of Python, its comments and strings, each in its line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    lines = [""] * (text.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in PROSE:
            for number, part in enumerate(token.string.split("\n"), start=token.start[0] - 1):
                lines[number] += f" {part}"
    return "\n".join(lines)


def problems(text: str) -> dict[str, str]:
    """The first match of each pattern: its name and the line that holds it."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        for name, pattern in PATTERNS.items():
            if name not in found and re.search(pattern, MARKUP.sub("", line), re.IGNORECASE):
                found[name] = f"line {number}: {line.strip()}"
    return found


def allowed(name: str) -> frozenset[str]:
    """The patterns that a file or one of its folders may still use."""
    return frozenset().union(*(names for place, names in ALLOWED.items()
                               if name == place or name.startswith(f"{place}/")))


def product() -> list[str]:
    """The files that users and engineers read, relative to the repository."""
    files = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    for folder, endings in (("tracks", "py md toml"), ("solutions", "py md toml"),
                            ("grader", "py toml"), ("tritonlab", "py html css j2"),
                            ("docs", "md")):
        for ending in endings.split():
            files += (ROOT / folder).rglob(f"*.{ending}")
    return sorted(str(path.relative_to(ROOT)) for path in files if path.is_file())


@pytest.mark.parametrize("name", product())
def test_a_file_uses_the_words_of_the_field(name):
    found = problems(english(ROOT / name))

    assert {key: line for key, line in found.items() if key not in allowed(name)} == {}


@pytest.mark.parametrize(("sentence", "pattern"), [
    ("An argument is no tensor.", "is no"),
    ("Let neighbouring lanes take neighbouring elements.", "neighbouring"),
    ("It fits the shared memory of one multiprocessor.", "multiprocessor"),
    ("The copy engine moves a whole tile.", "copy engine"),
    ("It passes on the processor.", "processor"),
    ("The suite states three laws.", "laws"),
    ("The program reads memory nobody wrote.", "nobody wrote"),
    ("Masked lanes load garbage.", "lane of a block"),
    ("The kernel does 4 operations per byte.", "intensity"),
    ("What the optimiser cannot see is its behaviour.", "British spelling"),
])
def test_a_planted_sentence_is_found(sentence, pattern):
    assert pattern in problems(f"# Title\n\n{sentence}\n")


@pytest.mark.parametrize("sentence", [
    "The tensor is no longer contiguous.", "A streaming multiprocessor (SM) has four partitions.",
    "There is no other launch.", "Each lane of a warp loads one element.",
    "Coalesced accesses touch contiguous elements.", "The CPU rounds each operation.",
])
def test_a_plain_sentence_passes(sentence):
    assert problems(sentence) == {}
