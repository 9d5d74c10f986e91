"""Canvas's "Download Submissions": ``lastfirst_[LATE_]userid_fileid_name.py``, zipped or not.

Names are built in Canvas's ``lib/content_zipper.rb``: the sortable name in lower case, of which
letters, digits and underscores stay, then LATE, the id of the user, that of the file, and its name.
Canvas numbers the name (``kernel-1.py``) where the student has handed in one of that name before.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from tritonlab.classroom.importers.file_tree import FileTree, printable
from tritonlab.classroom.importers.incoming import Incoming, is_code, submissions

_REST = r"(?:(?P<file>\d+)_)?(?P<rest>.+)"
_NAME = re.compile(rf"(?P<name>.+?)_(?P<late>LATE_)?(?P<user>\d+)_{_REST}")
_ANONYMOUS = re.compile(rf"(?P<late>LATE_)?(?P<name>anon)_(?P<user>[^_]+)_{_REST}")
_TYPED = ("text.html", "link.html")


def recognizes(tree: FileTree) -> bool:
    """Whether most of the names at the top are Canvas's, with both ids."""
    names = [name for name in tree.top if is_code(name) or name.endswith(".html")]
    matches = [match for name in names if (match := _parsed(name))]
    return 2 * len(matches) > len(names) and any(match["file"] for match in matches)


def read(tree: FileTree) -> Iterator[Incoming]:
    """Yields the submissions; all files of a user are one.

    A user's id is that of the column ID in Canvas's gradebook.
    """
    users: dict[str, dict[str, re.Match[str]]] = {}
    for name in sorted(tree.top):
        if match := _parsed(name):
            users.setdefault(match["user"], {})[name] = match
        elif is_code(name):
            yield from submissions(
                FileTree("", {name: tree.files[name]}),
                Incoming(name, name=printable(name),
                         problems=("The file is not named as Canvas names files.",)))
    for user, matches in users.items():
        first = next(iter(matches.values()))
        files = {match["rest"]: tree.files[name] for name, match in _oldest_first(matches)}
        is_anonymous = first.re is _ANONYMOUS
        base = Incoming(
            f"anonymous {user}" if is_anonymous else first["name"], late=bool(first["late"]),
            name=printable(f"{first['name']}_{user}"),
            attempt=max((match["file"] or "" for match in matches.values()),
                        key=lambda number: (len(number), number)),
            ids=() if is_anonymous else (f"canvas:{user}",),
            problems=tuple(f"{printable(name)} was left out: it is text that the student typed "
                           "into Canvas, or a link." for name, match in matches.items()
                           if not match["file"]))
        for one in submissions(FileTree("", files), base):
            yield replace(one, name=printable(next(iter(matches)))) if len(matches) == 1 else one


def _oldest_first(matches: dict[str, re.Match[str]]) -> list[tuple[str, re.Match[str]]]:
    return sorted(matches.items(), key=lambda item: int((item[1]["file"] or "0")[:30]))


def _parsed(name: str) -> re.Match[str] | None:
    match = _ANONYMOUS.fullmatch(name) or _NAME.fullmatch(name)
    return match if match and (match["file"] or match["rest"] in _TYPED) else None
