"""Which case is meant: by its name, or by words that no other name holds."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

SHOWN = 4  # names in a message


class UnknownCase(ValueError):
    """No case, or more than one, goes by the given words."""

    def __init__(self, wanted: str, near: Sequence[str], several: int = 0) -> None:
        self.wanted, self.near, self.several = wanted, tuple(near), several
        super().__init__(f"{several or 'no'} cases go by {wanted!r}")


def select(wanted: str, names: Iterable[str]) -> str:
    """The name that is meant: itself, else the only one that begins with the words or holds them.

    Capitals and the width of gaps do not matter.

    Raises:
        UnknownCase: with names to choose from.
    """
    known = {_plain(name): name for name in names}
    words = _plain(wanted)
    if words in known:
        return known[words]
    for found in ([name for plain, name in known.items() if words and plain.startswith(words)],
                  [name for plain, name in known.items() if words and words in plain]):
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownCase(wanted, found[:SHOWN], len(found))
    close = difflib.get_close_matches(words, known, n=SHOWN, cutoff=0.5)
    raise UnknownCase(wanted, [known[plain] for plain in close])


def shortest(name: str, names: Sequence[str]) -> str:
    """The fewest whole words at the front of a name that ``select`` takes for it."""
    words = name.split(" ")
    for count in range(1, len(words)):
        begin = " ".join(words[:count]).rstrip(",;:")
        if count > 1 or len(words) == 2:  # one word says too little to a reader
            try:
                if select(begin, names) == name:
                    return begin
            except UnknownCase:
                continue
    return name


def _plain(name: str) -> str:
    return " ".join(name.casefold().split())
