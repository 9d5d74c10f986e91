"""Moodle's "Download all submissions": ``Full Name_1234_assignsubmission_file_/kernel.py``.

Names are built in Moodle's ``mod/assign/classes/downloader.php``: the full name without
underscores, the number of the participant, and the plugin; older versions end with an underscore.
Without folders, the file's name follows. In group assignments the group is named instead.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tritonlab.classroom.importers.file_tree import Entry, FileTree, printable
from tritonlab.classroom.importers.incoming import Incoming, submissions

_NAME = re.compile(r"(?P<prefix>(?P<name>.+?)(?:_(?P<number>\d+))?)_assignsubmission_"
                   r"(?P<plugin>file|onlinetext)(?:_(?P<rest>.*))?")


def recognizes(tree: FileTree) -> bool:
    """Whether a folder or file at the top is named as Moodle names it."""
    return any(map(_NAME.fullmatch, (*tree.children, *tree.top)))


def read(tree: FileTree) -> Iterator[Incoming]:
    """Yields the submissions; the number is that of "Participant 1234" in Moodle's worksheet."""
    students: dict[str, tuple[re.Match[str], dict[str, Entry], dict[str, str]]] = {}
    for path, entry in tree.files.items():
        if match := _NAME.fullmatch(path.partition("/")[0]):
            student = students.setdefault(match["prefix"], (match, {}, {}))
            if match["plugin"] == "file":
                rest = match["rest"] if "/" not in path else path.partition("/")[2]
                student[1][rest or PurePosixPath(path).name] = entry
    for path, reason in tree.left_out.items():
        top, _, rest = path.partition("/")
        if (match := _NAME.fullmatch(top)) and match["prefix"] in students:
            students[match["prefix"]][2][rest] = reason
    for prefix, (match, files, left_out) in students.items():
        number = match["number"] or ""
        yield from submissions(
            FileTree(prefix, files, left_out),
            Incoming(match["name"], name=printable(prefix), attempt=number,
                     ids=(f"moodle:{number}",) if number else (),
                     problems=() if files else ("The student typed text and handed in no file.",)))
