"""Gradescope's "Export Submissions": a folder a submission, and ``submission_metadata.yml``.

The metadata are what Ruby's Psych writes. A strict reader of the few lines that are needed stands
here instead of PyYAML: it adds no dependency, reads the 1,500 submissions of a large course in
less than a second although most of the file is the output of autograders, and accepts what other
readers of YAML refuse in real exports, such as a closing quote in the first column.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

from tritonlab.classroom.importers.file_tree import FileTree, printable
from tritonlab.classroom.importers.incoming import Incoming, submissions
from tritonlab.errors import UnusableFile

METADATA = "submission_metadata.yml"
_MOST = 256_000_000  # bytes of the metadata
_FOLDER = re.compile(r"""["']?(submission_\w+)["']?:\s*""")
_KEY = re.compile(r"  :?(\w+):(?:\s+(.*))?")  # of a submission; all deeper lines are indented more
_FIELD = re.compile(r"\s{2,}(- )?\s*:?(\w+):(?:\s+(.*))?")  # of a submitter
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)? ?(Z|[+-]\d\d:?\d\d)?")
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0", '"': '"', "\\": "\\", "/": "/", "e": "\x1b"}


@dataclass
class _Submission:
    submitters: list[dict[str, str]] = field(default_factory=list)
    at: datetime | None = None
    problems: list[str] = field(default_factory=list)


def recognizes(tree: FileTree) -> bool:
    """Whether the metadata lie beside the folders."""
    return METADATA in tree.top


def read(tree: FileTree) -> Iterator[Incoming]:
    """Yields a submission for each of its submitters; groups have several.

    Raises:
        UnusableFile: the metadata are missing, or cannot be read.
    """
    if METADATA not in tree.files:
        raise UnusableFile(f"{printable(tree.name)} has no {METADATA}.",
                           "Export the submissions from Gradescope again, or name another layout "
                           "with `--from`.")
    try:
        text = tree.content(METADATA, _MOST).decode()
    except UnicodeDecodeError as error:
        raise UnusableFile(f"{METADATA} is not UTF-8.") from error
    metadata = _metadata(text)
    for folder, child in tree.children.items():
        if folder not in metadata:
            yield from submissions(child, Incoming(
                folder, name=printable(folder), attempt=folder,
                problems=(f"{METADATA} does not name its student.",)))
    for folder, one in metadata.items():
        child = tree.children.get(folder, FileTree(folder, {}))
        problems = (*one.problems, *(() if one.submitters else (
            f"{METADATA} does not name its student.",)))
        for person in one.submitters or [{}]:
            ids = tuple(f"{kind}:{person[key]}" for kind, key in (("email", "email"),
                        ("sis_id", "sid")) if person.get(key))
            yield from submissions(child, Incoming(
                person.get("name") or person.get("email") or person.get("sid") or folder,
                at=one.at, name=printable(folder), attempt=folder.removeprefix("submission_"),
                ids=ids, problems=problems))


def _metadata(text: str) -> dict[str, _Submission]:
    """The submitters and times by folder.

    Every line that a student can influence is indented by four columns or more, so that keys in
    the first and third column are Gradescope's own.
    """
    result: dict[str, _Submission] = {}
    anchors: dict[str, str] = {}
    one: _Submission | None = None
    in_submitters = False
    for line in text.splitlines():
        if line[:1] not in ("", " "):
            folder = _FOLDER.fullmatch(line)
            one = result.setdefault(folder[1], _Submission()) if folder else None
            in_submitters = False
        elif one is None:
            continue
        elif key := _KEY.fullmatch(line):
            in_submitters = key[1] == "submitters"
            if key[1] == "created_at":
                one.at = _time(_scalar(key[2] or "", anchors, one.problems))
        elif in_submitters and (item := _FIELD.fullmatch(line)):
            if item[1]:
                one.submitters.append({})
            if one.submitters:
                one.submitters[-1][item[2]] = _scalar(item[3] or "", anchors, one.problems)
        elif in_submitters and line.strip():
            one.problems.append(f"{METADATA} has a line that is not understood: "
                                f"'{printable(line.strip()[:60])}'.")
    return result


def _scalar(text: str, anchors: dict[str, str], problems: list[str]) -> str:
    """The value of a plain, quoted or repeated scalar on one line; empty for others."""
    text = text.strip()
    anchor = re.match(r"&(\S+)\s+", text)
    value = text[anchor.end():] if anchor else text
    if value[:1] == "*" and value[1:] in anchors:
        value = anchors[value[1:]]
    elif re.fullmatch(r"'(?:[^']|'')*'", value):
        value = value[1:-1].replace("''", "'")
    elif re.fullmatch(r'"(?:[^"\\]|\\.)*"', value):
        value = re.sub(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(.))", _unescaped, value[1:-1])
    elif value[:1] in tuple("'\"*&!|>{[%@`"):
        problems.append(f"{METADATA} has a value that is not understood: "
                        f"'{printable(value[:60])}'.")
        value = ""
    elif value in ("~", "null"):
        value = ""
    if anchor:
        anchors[anchor[1]] = value
    return value


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _ESCAPES.get(match[3], match[3])


def _time(text: str) -> datetime | None:
    """The time of "2026-04-26 17:34:00.861687000 Z"; without a zone it is UTC."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    zone = UTC
    if match[4] and match[4] != "Z":
        hours, minutes = int(match[4][1:3]), int(match[4][-2:])
        offset = timedelta(hours=hours, minutes=minutes)
        zone = timezone(-offset if match[4][0] == "-" else offset)
    try:
        return datetime.fromisoformat(f"{match[1]} {match[2]}").replace(tzinfo=zone)
    except ValueError:
        return None
