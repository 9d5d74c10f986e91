"""Selects a case by its name, or by a unique part of it."""

import difflib
import re
from collections.abc import Iterable, Sequence

SHOWN = 4  # names in a message
LONG = 40  # characters of a name, from which on it is cut
_DIGIT_GAP = re.compile(r"(?<=\d)[ ,](?=\d{3}\b)")  # of 4 096, and of 4,096 as users type it


class UnknownCase(ValueError):
    """No case, or more than one, goes by the given words."""

    def __init__(self, wanted: str, near: Sequence[str], several: int = 0) -> None:
        self.wanted, self.near, self.several = wanted, tuple(near), several
        super().__init__(f"{several or 'no'} cases go by {wanted!r}")


def select(wanted: str, names: Iterable[str]) -> str:
    """The name that is meant: itself, else the only one that begins with the words or holds them.

    Capitals, the width of gaps and those between the digits of a number do not matter.

    Raises:
        UnknownCase: with names to choose from.
    """
    listed = {_plain(name): name for name in names}
    words = _plain(wanted)
    if words in listed:
        return listed[words]
    begin = [name for plain, name in listed.items() if words and plain.startswith(words)]
    matching = begin or [name for plain, name in listed.items() if words and words in plain]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UnknownCase(wanted, matching[:SHOWN], len(matching))
    close = difflib.get_close_matches(words, listed, n=SHOWN, cutoff=0.5)
    raise UnknownCase(wanted, [listed[plain] for plain in close])


def shortest(name: str, names: Sequence[str]) -> str:
    """Shortens a name while ``select`` still finds its case.

    What stands before the first comma, else the whole name; of a long one the first words.
    """
    words = name.split(" ")
    clauses = [name.partition(", ")[0], name if len(name) <= LONG else ""]
    beginnings = [" ".join(words[:count]).rstrip(",;:") for count in range(3, len(words))]
    for begin in (*clauses, *beginnings):
        try:
            if begin and len(begin) <= LONG and select(begin, names) == name:
                return begin
        except UnknownCase:
            continue
    return name


def _plain(name: str) -> str:
    return _DIGIT_GAP.sub("", " ".join(name.casefold().split()))
