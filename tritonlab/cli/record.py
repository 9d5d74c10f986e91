"""The verbs of the record: list, status, merge, certificate, verify and report."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tritonlab.cli import boundary, options
from tritonlab.cli.boundary import onward, progress_on, reading_here, show, verb, warn
from tritonlab.cli.options import Gpu, Json, Plain
from tritonlab.course import course
from tritonlab.errors import TritonlabError, shown
from tritonlab.progress import certificate as certificates
from tritonlab.progress import merge as merging
from tritonlab.progress import progress_report
from tritonlab.progress.journal import JournalReading
from tritonlab.workspace import course_choice, output_files, workspace


@verb
def list_(as_json: Json = False, plain: Plain = False) -> int:
    """List all tracks and modules, with your progress."""
    from tritonlab.render import progress as view

    the_course = course_choice.load()
    reading = reading_here(the_course)
    shown_certificate = certificates.build(the_course, reading)
    if as_json:
        boundary.print_json(view.list_to_dict(the_course, shown_certificate))
        return 0
    screen = boundary.screen_on(plain)
    view.show_list(screen, the_course, shown_certificate)
    screen.next(onward(the_course, reading), "Next: ")
    return 0


@verb
def status(
    module_id: Annotated[str | None, typer.Argument(
        metavar="[ID]", help="Show only the attempts at this module.",
        autocompletion=options.modules)] = None,
    history: Annotated[bool, typer.Option(
        "--history", help="Show every attempt: verdict, evidence, checks, hints, device.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Show your progress: modules passed, open and left; or every attempt."""
    from tritonlab.render import progress as view

    the_course = course_choice.load()
    reading = reading_here(the_course)
    if history or module_id:
        return _history(the_course, reading, module_id, as_json, plain)
    place = workspace.find()
    standing = certificates.build(the_course, reading)
    here = place.module_here(the_course) if place else None
    current = here or the_course.get(reading.current)
    command = "tritonlab grade" if current and standing.entry(current).is_open else \
        onward(the_course, reading)
    show(as_json, plain,
         {**standing.to_dict(), "current": current.id if current else None,
          "workspace": str(place.root) if place else None},
         lambda screen: view.show_status(screen, the_course, standing, current, place), command)
    return 0


def _history(the_course: course.Course, reading: JournalReading, module_id: str | None,
             as_json: bool, plain: bool) -> int:
    from tritonlab.render import progress as view

    module = the_course.find(module_id) if module_id else None
    attempts = progress_report.attempts(the_course, reading, module)
    begun = module and any(record.module == module.id for record in reading.records)
    command = f"tritonlab {'grade' if begun else 'start'} {module.id}" if module else \
        onward(the_course, reading)
    show(as_json, plain,
         {"schema": 1, "module": module.id if module else None,
          "attempts": [asdict(attempt) for attempt in attempts]},
         lambda screen: view.show_history(screen, the_course, attempts), command)
    return 0


@verb
def merge(
    path: Annotated[Path, typer.Argument(
        metavar="PATH", help="Workspace, its .tritonlab folder, or a journal.jsonl.")],
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Merge the record of another machine into this one; merging again changes nothing."""
    from tritonlab.render import progress as view

    the_course = course_choice.load()
    place = workspace.require(the_course.example)
    merged = merging.merge(the_course, place.journal(the_course), path)
    show(as_json, plain,
         {"schema": 1, "source": str(path), "added": merged.added, "there": merged.there,
          "newly_passed": merged.gained, "core_passed": merged.after.core.passed,
          "problems": list(merged.after.problems)},
         lambda screen: view.show_merge(screen, merged), "tritonlab status")
    return warn(merged.warning, *merged.after.problems)


@verb
def certificate(
    name: Annotated[str | None, typer.Option(
        help="Name on the certificate; an empty name removes it.")] = None,
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Also write an HTML page that prints on one sheet.")] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Show the certificate, created from the journal."""
    from tritonlab.render import certificate_text as view

    output_files.check(html)
    the_course = course_choice.load()
    journal = workspace.require(the_course.example).journal(the_course)
    if name is None:
        warning = journal.renew()
    else:
        warning = journal.append("named", name=" ".join(name.split())[:100])
    reading = journal.read()
    current = certificates.build(the_course, reading)
    if html is not None:
        from tritonlab.render import pages

        output_files.write(pages.certificate(current, html.name), html)
    if as_json:
        sys.stdout.write(current.to_json())
    else:
        screen = boundary.screen_on(plain)
        view.show(screen, current, html)
        screen.next(*((f"tritonlab verify {shlex.quote(shown(html.absolute()))}",
                       "Grade its claims again: ") if html else
                      (onward(the_course, reading, done="tritonlab list"), "Next: ")))
    return warn(warning, *reading.problems)


@verb
def verify(
    file: Annotated[Path, typer.Argument(
        metavar="FILE", help="Certificate: an HTML page, a JSON file, or a workspace.")],
    sources: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Folder with the sources, laid out as in a workspace. Default: "
                               "the folder of the certificate.")] = None,
    gpu: Gpu = True,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Grade the claims of a certificate again, on new inputs. Nothing is recorded.

    Exit code 0 if all that is claimed holds, as far as this machine can show; 1 if anything does
    not, its source is missing or another one; 2 if there is nothing to verify.
    """
    from tritonlab.render import certificate_text as view
    from tritonlab.verify import certificate_reader
    from tritonlab.verify import verify as verification

    the_course = course_choice.load()
    file, claimed, problems = certificate_reader.locate(the_course, file)
    root = sources or verification.sources(file, claimed)
    if not root.is_dir():
        raise TritonlabError(f"There is no folder {shown(root)}.",
                             "Pass the folder that contains the sources with `--sources FOLDER`.")
    with progress_on(plain or as_json) as progress:
        result = verification.verify(the_course, claimed, root, gpu=gpu, on_event=progress)
    command, before = verification.onward(result, shown(file), shown(root))
    show(as_json, plain, {**result.to_dict(), "sources": str(root)},
         lambda screen: view.show_verification(screen, result, root), command, before)
    warn(*problems)
    return result.exit_code


@verb
def report(
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write an HTML page with attempts over time and charts.",
    )] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Show your progress: modules, attempts, evidence, hints and benchmarks."""
    from tritonlab.render import progress as view

    output_files.check(html)
    the_course = course_choice.load()
    place = workspace.require(the_course.example)
    reading = place.journal(the_course).read()
    overview = progress_report.build(the_course, reading, place.mark)
    if html is not None:
        from tritonlab.render import pages

        with progress_on(plain or as_json) as progress:
            progress("drawing the page")
            output_files.write(pages.report(overview), html)
    show(as_json, plain, {**overview.to_dict(), "page": str(html) if html else None},
         lambda screen: view.show_report(screen, overview, html), onward(the_course, reading))
    return warn(*reading.problems)
