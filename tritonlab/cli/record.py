"""The verbs of the record: list, status, merge, certificate, verify and report."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tritonlab.cli import options
from tritonlab.cli.boundary import (
    onward,
    print_json,
    progress_on,
    reading_here,
    screen_on,
    verb,
    warn,
)
from tritonlab.cli.options import Gpu, Json, Plain
from tritonlab.course import course
from tritonlab.errors import TritonlabError, shown
from tritonlab.progress import certificate as certificates
from tritonlab.workspace import output_files, workspace


@verb
def list_(as_json: Json = False, plain: Plain = False) -> int:
    """All tracks and modules, and how far you have come."""
    from tritonlab.render import progress as view

    the_course = course.load()
    reading = reading_here(the_course)
    shown_certificate = certificates.build(the_course, reading)
    if as_json:
        return print_json(view.list_to_dict(the_course, shown_certificate))
    view.show_list(screen_on(plain), the_course, shown_certificate, onward(the_course, reading))
    return 0


@verb
def status(
    module_id: Annotated[str | None, typer.Argument(
        metavar="[ID]", help="Only the attempts at this module.",
        autocompletion=options.modules)] = None,
    history: Annotated[bool, typer.Option(
        "--history", help="Every attempt: verdict, evidence, checks, hints, device.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Your progress: what is passed, what is open, what is left; or every attempt."""
    from tritonlab.render import progress as view

    if history or module_id:
        return _history(module_id, as_json, plain)
    the_course = course.load()
    reading = reading_here(the_course)
    place = workspace.find()
    standing = certificates.build(the_course, reading)
    here = place.module_here(the_course) if place else None
    current = here or the_course.get(reading.current)
    command = "tritonlab grade" if current and standing.entry(current).is_open else \
        onward(the_course, reading)
    if as_json:
        return print_json({**standing.to_dict(), "current": current.id if current else None,
                            "workspace": str(place.root) if place else None, "next": command})
    view.show_status(screen_on(plain), the_course, standing, current,
                     shown(place.root) if place else None, command)
    return 0


def _history(module_id: str | None, as_json: bool, plain: bool) -> int:
    from tritonlab.progress import progress_report
    from tritonlab.render import progress as view

    the_course = course.load()
    reading = reading_here(the_course)
    module = the_course.find(module_id) if module_id else None
    attempts = progress_report.attempts(the_course, reading, module)
    command = onward(the_course, reading)
    if module is not None:
        begun = any(record.module == module.id for record in reading.records)
        command = f"tritonlab {'grade' if begun else 'start'} {module.id}"
    if as_json:
        return print_json({"schema": 1, "module": module.id if module else None,
                           "attempts": [asdict(attempt) for attempt in attempts], "next": command})
    view.show_history(screen_on(plain), the_course, attempts, command)
    return 0


@verb
def merge(
    path: Annotated[Path, typer.Argument(
        metavar="PATH", help="A workspace, its .tritonlab folder, or a journal.jsonl.")],
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Add what you did on another machine to the record here; merging again changes nothing."""
    from tritonlab.progress import merge as merging
    from tritonlab.render import progress as view

    the_course = course.load()
    place = workspace.require(the_course.example)
    merged = merging.merge(the_course, place.journal(the_course), path)
    command = "tritonlab status"
    if as_json:
        print_json({"schema": 1, "source": str(path), "added": merged.added,
                    "there": merged.there, "newly_passed": merged.gained,
                    "core_passed": merged.after.core.passed,
                    "problems": list(merged.after.problems), "next": command})
    else:
        view.show_merge(screen_on(plain), merged, command)
    return warn(merged.warning, *merged.after.problems)


@verb
def certificate(
    name: Annotated[str | None, typer.Option(
        help="The name to put on it; an empty one takes it off.")] = None,
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a page for a browser too, to print on one sheet.")] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """The certificate, made anew from the journal."""
    from tritonlab.render import certificate_text as view

    output_files.check(html)
    the_course = course.load()
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
    elif html is not None:
        path = shown(html.absolute())
        view.show_page(screen_on(plain), current, path, f"tritonlab verify {shlex.quote(path)}")
    else:
        view.show(screen_on(plain), current, onward(the_course, reading, done="tritonlab list"))
    return warn(warning, *reading.problems)


@verb
def verify(
    file: Annotated[Path, typer.Argument(
        metavar="FILE", help="A certificate: its page, its JSON, or a workspace.")],
    sources: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Where the sources lie, as in a workspace. By default beside the "
                               "certificate.")] = None,
    gpu: Gpu = True,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Grade again, on new inputs, what a certificate claims. Nothing is recorded.

    Exit code 0 if all that is claimed holds, as far as this machine can show; 1 if anything does
    not, its source is missing or another one; 2 if there is nothing to verify.
    """
    from tritonlab.render import certificate_text as view
    from tritonlab.verify import certificate_reader
    from tritonlab.verify import verify as verification

    screen = screen_on(plain)
    the_course = course.load()
    file, claimed, problems = certificate_reader.locate(the_course, file)
    root = sources or verification.sources(file, claimed)
    if not root.is_dir():
        raise TritonlabError(f"There is no folder {shown(root)}.",
                             "Name the one that holds the sources with `--sources FOLDER`.")
    with progress_on(plain or as_json) as progress:
        result = verification.verify(the_course, claimed, root, gpu=gpu, on_event=progress)
    command, before = verification.onward(result, shown(file), shown(root))
    if as_json:
        print_json({**result.to_dict(), "sources": str(root), "next": command})
    else:
        view.show_verification(screen, result, shown(root.absolute()), command, before)
    warn(*problems)
    return result.exit_code


@verb
def report(
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a page for a browser, with attempts over time and pictures.",
    )] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Your way so far: modules, attempts over time, evidence, hints and benchmarks."""
    from tritonlab.progress import progress_report
    from tritonlab.render import progress as view

    output_files.check(html)
    the_course = course.load()
    place = workspace.require(the_course.example)
    reading = place.journal(the_course).read()
    overview = progress_report.build(the_course, reading, place.mark)
    command = onward(the_course, reading)
    if html is not None:
        from tritonlab.render import pages

        with progress_on(plain or as_json) as progress:
            progress.say("drawing the page")
            output_files.write(pages.report(overview), html)
    if as_json:
        print_json({**overview.to_dict(), "page": str(html) if html else None, "next": command})
    elif html is not None:
        screen = screen_on(plain)
        screen.line(f"The page is {shown(html.absolute())}")
        screen.line(view.report_summary(overview))
        screen.next(command)
    else:
        view.show_report(screen_on(plain), overview, command)
    return warn(*reading.problems)
