"""A new course: its settings, a first track and the scaffold of a first module."""

import re
from pathlib import Path

from tritonlab.authoring import scaffold
from tritonlab.course import course, settings
from tritonlab.errors import TritonlabError, not_saved, shown
from tritonlab.progress import safe_files

TRACK = "basics"
MODULE = "track1/first-module"


def create(folder: Path, course_id: str = "", title: str = "") -> list[Path]:
    """Creates a course in a folder that is missing or empty; returns its files.

    Args:
        course_id: by default the name of the folder, in small letters.
        title: by default the id.

    Raises:
        TritonlabError: the folder has files, or the id or title cannot be used.
        NotSaved: a file cannot be written.
    """
    own = course_id or re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    if not settings.ID.fullmatch(own) or own == settings.SHIPPED:
        raise TritonlabError(f"'{own}' cannot be the id of a course.",
                             "Name one with --id: small letters, digits and single hyphens, such "
                             "as cs149.")
    title = " ".join((title or own).split())
    if not title.isprintable() or set(title) & {'"', "\\"}:
        raise TritonlabError(f"{title!r} cannot be a title.",
                             "Leave out quotation marks, backslashes and control characters.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise TritonlabError(f"{shown(folder)} is not empty, so nothing was created.",
                             "Name another folder, or add a module with `tritonlab new --course`.")
    texts = {
        folder / settings.FILE: f'id = "{own}"\nversion = "1"\ntitle = "{title}"\n',
        folder / "tracks" / TRACK / "track.toml":
            'number = 1\ntitle = "Basics"\nblurb = "The first steps."\nstarter = "blanks"\n'}
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            safe_files.create(path, text.encode())
            path.chmod(0o644)
    except OSError as error:
        raise not_saved("The course", error, folder) from error
    roots = course.roots_in(folder)
    plan = scaffold.plan(course.load(roots), roots, MODULE)
    return [*texts, *scaffold.write(plan)]
