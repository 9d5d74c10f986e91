"""The verbs of authors: check and new."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from grader.report import EXIT_FAILED, EXIT_USAGE
from tritonlab import errors
from tritonlab.cli import options
from tritonlab.cli.boundary import progress_on, show, verb
from tritonlab.cli.options import Json, Plain
from tritonlab.course import course, settings
from tritonlab.course.override import NOTHING
from tritonlab.errors import BadCourse, TritonlabError

Folder = Annotated[Path | None, typer.Option(
    "--course", metavar="FOLDER",
    help="Use another course: a folder with tracks/, solutions/ and suites/.")]
MOST_NAMED = 3  # modules in the command that is offered


@verb
def check(
    ids: Annotated[list[str] | None, typer.Argument(
        metavar="ID", help="Modules, such as track1/softmax. Default: all of the course's own.",
        autocompletion=options.modules)] = None,
    folder: Folder = None,
    runs: Annotated[int, typer.Option(
        min=1, max=1000, help="Number of grades per mutant, each with new inputs.")] = 5,
    anew: Annotated[bool, typer.Option(
        "--no-cache", help="Ignore cached proofs and prove everything again.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """For authors: check modules, and prove that their tests find mistakes."""
    from tritonlab.authoring import module_files, runner
    from tritonlab.render import author as view

    roots = course.roots_in(folder) if folder else course.default_roots()
    the_course = _course_of_author(roots, EXIT_FAILED)
    # Modules of a course that it extends are proved there.
    modules = [the_course.find(name) for name in ids] if ids else [
        module for module in the_course.modules
        if module.folder.is_relative_to(roots.tracks) or module.override != NOTHING]
    strays = list(module_files.numbers_of_tracks(the_course) if ids
                  else module_files.strays(the_course, roots))
    with progress_on(plain or as_json) as progress:
        proved = runner.prove(list(dict.fromkeys(modules)), roots, strays, runs=runs, anew=anew,
                              on_event=progress)
    failed = [proof.module for proof in proved.proofs if not proof.passed]
    again = " ".join(failed) if len(failed) <= MOST_NAMED else ""
    command = "tritonlab list" if proved.passed else _typed("tritonlab check", again, folder)
    note = errors.keep(proved.broken, None) if proved.broken else ""
    show(as_json, plain, proved.to_dict(),
         lambda screen: view.show_check(screen, proved, note), command)
    return proved.exit_code


@verb
def new(
    where: Annotated[str, typer.Argument(
        metavar="TRACK/SLUG",
        help="Track and slug, such as track2/my-idea. The next free number is used.",
        autocompletion=options.tracks)],
    title: Annotated[str, typer.Option(
        help="Title of the module. Default: derived from the slug.")] = "",
    minutes: Annotated[int, typer.Option(
        min=1, max=6000, help="Expected time of a learner, in minutes.")] = 120,
    elective: Annotated[bool, typer.Option(
        "--elective", help="Make the module an elective, not a core module.")] = False,
    entry: Annotated[str, typer.Option(
        metavar="NAME", help="Name of the function. Default: derived from the slug.")] = "",
    folder: Folder = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """For authors: create the files of a new, working module."""
    from tritonlab.authoring import scaffold
    from tritonlab.render import author as view

    roots = course.roots_in(folder) if folder else course.default_roots()
    if roots == course.shipped_roots() and roots.tracks.parent == course.package():
        raise TritonlabError(
            f"The shipped course is part of the installed package {course.package()}, which the "
            "next installation replaces. Nothing was created.",
            "Name the folder of your own course with `--course DIR`, or type this in a checkout "
            "of tritonlab.")
    the_course = _course_of_author(roots, EXIT_USAGE)
    plan = scaffold.plan(the_course, roots, where, title=title, minutes=minutes,
                         core=not elective, entry=entry)
    files = scaffold.write(plan)
    show(as_json, plain,
         {"schema": 1, "module": plan.id, "files": [str(path) for path in files]},
         lambda screen: view.show_new(screen, plan, files),
         _typed("tritonlab check", plan.id, folder))
    return 0


def _course_of_author(roots: course.Roots, malformed: int) -> course.Course:
    """Loads a course; a malformed file ends with the exit code ``malformed``."""
    extends = (roots.tracks.parent / settings.FILE).is_file() and course.settings_of(roots).extends
    if not extends and not any(roots.tracks.glob("*/track.toml")):
        raise TritonlabError(f"There is no course in {errors.shown(roots.tracks.parent)}: no "
                             "folder of tracks/ holds a track.toml.",
                             "Name another folder with --course, or write one with number, title, "
                             "blurb and starter.")
    try:
        return course.load(roots)
    except BadCourse as error:
        failure = TritonlabError(error.message, "Fix it, then repeat the command.")
        failure.exit_code = malformed
        raise failure from error


def _typed(command: str, ids: str, folder: Path | None) -> str:
    """Returns a command for modules of the course in ``folder``."""
    elsewhere = f"--course {shlex.quote(str(folder))}" if folder else ""
    return " ".join(filter(None, (command, ids, elsewhere)))
