"""Listing: code in its order, each row with the line of the learner's file that it comes from."""

from __future__ import annotations

from typing import Any

Listing = tuple[tuple[int | None, str], ...]

MOST_ROWS = 20_000
"""Rows that are kept; what a kernel of the course compiles to has at most 3,000."""
LONGEST = 300
"""Characters of a row; the rest is cut."""
_MOST_LINE = 1 << 20  # of a learner's file


def cut(listing: Listing) -> Listing:
    """The listing, within what ``listing_of`` takes."""
    return tuple((line, text[:LONGEST]) for line, text in listing[:MOST_ROWS])


def listing_of(data: Any) -> Listing:
    """Read a listing from a process that is not trusted: pairs of a line and a text.

    Raises:
        ValueError: it has another form.
    """
    if not isinstance(data, list) or len(data) > MOST_ROWS:
        raise ValueError(f"a listing is a list of at most {MOST_ROWS} rows")
    return tuple(map(_row, data))


def _row(row: Any) -> tuple[int | None, str]:
    match row:
        case [None, str(text)] if len(text) <= LONGEST:
            return None, text
        case [int(line), str(text)] if (
                len(text) <= LONGEST and not isinstance(line, bool) and 1 <= line <= _MOST_LINE):
            return line, text
    raise ValueError(f"no row of a listing: {row!r:.60}")
