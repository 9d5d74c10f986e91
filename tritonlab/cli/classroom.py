"""The verbs of `tritonlab class`."""

import re
import shlex
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grader.report import EXIT_FAILED
from grader.text import plural
from tritonlab.cli import boundary
from tritonlab.cli.boundary import show, verb, warn
from tritonlab.cli.options import Json, Plain, harmless
from tritonlab.errors import NotSaved, TritonlabError, shown

if TYPE_CHECKING:
    from tritonlab.classroom.book import Score
    from tritonlab.classroom.classroom import Classroom
    from tritonlab.classroom.pack.build import Pack

app = typer.Typer(name="class", rich_markup_mode=None, no_args_is_help=True,
                  help="For instructors: grade and understand a whole class.")


def _load(*, quick: bool = False) -> "Classroom":
    """Loads the class around the current folder; other verbs start without its modules."""
    from tritonlab.classroom import classroom

    return classroom.load(quick=quick)


def _load_students(*, quick: bool = False) -> "Classroom":
    """Loads the class; raises TritonlabError if it has no students yet."""
    the_class = _load(quick=quick)
    the_class.check_students()
    return the_class


@harmless
def _assignments(incomplete: str) -> list[str]:
    names = _load().settings.assignments
    return [name for name in names if name.startswith(incomplete)]


@harmless
def _students(incomplete: str) -> list[tuple[str, str]]:
    return [(one.id, one.name) for one in _load().roster.students
            if one.id.startswith(incomplete)]


AssignmentName = Annotated[str, typer.Argument(
    metavar="ASSIGNMENT", help="An assignment of class.toml.", autocompletion=_assignments)]
AssignmentNames = Annotated[list[str] | None, typer.Argument(
    metavar="[ASSIGNMENT]...", help="Assignments of class.toml. Default: all.",
    autocompletion=_assignments)]
StudentId = Annotated[str, typer.Argument(
    metavar="STUDENT", help="The id, name, login or address of a student.",
    autocompletion=_students)]
Undo = Annotated[bool, typer.Option("--undo", help="Take the decision back.")]
Reason = Annotated[str, typer.Option(help="The reason, which is kept in the log.")]


@app.command()
@verb
def init(
    folder: Annotated[Path, typer.Argument(
        metavar="[DIR]", help="The folder of the class.")] = Path(),
    course: Annotated[str, typer.Option(
        metavar="COURSE", help="The shipped course, or a folder with another.")] = "tritonlab",
    roster: Annotated[Path | None, typer.Option(
        metavar="FILE", help="A roster as CSV, of any of the systems that import knows.")] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Create a class: class.toml, roster.csv and the folder of its records."""
    from tritonlab.classroom import classroom
    from tritonlab.classroom.settings import SETTINGS
    from tritonlab.render import classroom as view

    folder = folder.resolve()
    written = classroom.create(folder, course, roster)
    if roster and folder / classroom.ROSTER not in written and \
            roster.resolve() != folder / classroom.ROSTER:
        warn(f"{shown(folder / classroom.ROSTER)} was there and is unchanged; {shown(roster)} was "
             "not copied.")
    command = "tritonlab class doctor"
    if folder != Path.cwd():
        command = f"cd {shlex.quote(shown(folder))} && {command}"
    show(as_json, plain, {"schema": 1, "files": [str(path) for path in written]},
         lambda screen: view.show_created(screen, folder, written), command,
         f"Edit {SETTINGS} and {classroom.ROSTER}, then type: ")
    return 0


@app.command()
@verb
def grade(
    assignments: AssignmentNames = None,
    students: Annotated[list[str] | None, typer.Option(
        "--student", metavar="STUDENT", help="Only this student; may be repeated.",
        autocompletion=_students)] = None,
    section: Annotated[str, typer.Option(help="Only this section of the roster.")] = "",
    jobs: Annotated[int | None, typer.Option(
        "--jobs", min=1, max=1024, help="Worker processes. Default: one for each core.")] = None,
    executor: Annotated[str, typer.Option(
        help="local, or ray: the nodes of a Ray cluster (extra tritonlab[ray]).")] = "local",
    shard: Annotated[str, typer.Option(
        metavar="I/N", help="Only part I of N, for Slurm arrays and CI matrices.")] = "",
    limit_cpu: Annotated[float | None, typer.Option(
        "--limit-cpu", metavar="S", min=1,
        help="CPU seconds of one submission, instead of those in class.toml.")] = None,
    effort: Annotated[str, typer.Option(
        help="whole; or values, for a draft that compiles nothing and gives no points.")] = "whole",
    stale: Annotated[bool, typer.Option(
        "--stale", help="Also grade again what other hidden tests or versions graded.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Grade everything again.")] = False,
    lower: Annotated[bool, typer.Option(
        "--lower", help="Let a new grade lower points that were published.")] = False,
    gpu: Annotated[bool, typer.Option("--gpu", help="Use the GPU of this machine.")] = False,
    dry_run: Annotated[bool, typer.Option(
        "--dry-run", help="Only say what would be graded.")] = False,
    as_json: Annotated[bool, typer.Option(
        "--json", help="Print one JSON event a line.")] = False,
    plain: Plain = False,
) -> int:
    """Grade all submissions that have no grade yet.

    Exits with 0 when all are graded, whatever their verdicts, and with 1 when some could not be.
    """
    import dataclasses

    from tritonlab.classroom import grading
    from tritonlab.render import classroom as view

    if effort not in ("whole", "values"):
        raise TritonlabError(f"'{effort}' is not an effort.", "Name whole or values.")
    the_class = _load_students()
    settings = the_class.settings
    if limit_cpu:
        settings = dataclasses.replace(settings, limit_cpu_s=limit_cpu)
    course, roots = grading.course_of(settings, the_class.root)
    work = grading.plan(settings, course, the_class.store, the_class.book,
                        the_class.assignments(assignments or ()),
                        students=the_class.selected(students or (), section), stale=stale,
                        again=again, gpu=gpu,
                        effort="values" if effort == "values" else "whole")
    if shard:
        work.tasks = grading.in_shard(work.tasks, *_shard(shard))
    warn(*the_class.book.problems, *grading.stale_reasons(work))
    if dry_run:
        show(as_json, plain, {"schema": 1, "grades": len(work.tasks), "done": work.done,
                              "stale": work.stale},
             lambda screen: view.show_plan(screen, work), "tritonlab class grade")
        return 0
    workers = _workers(executor, roots, jobs)
    progress = view.JsonLines() if as_json else \
        view.GradeProgress(boundary.screen_on(plain), len(work.tasks))
    with progress:
        summary = grading.run(settings, the_class.store, the_class.book, roots, work, jobs=jobs,
                              executor=workers, gpu=gpu, lower=lower, on_event=progress)
    if as_json:
        progress("end", view.summary_to_dict(summary))
    else:
        screen = boundary.screen_on(plain)
        view.show_summary(screen, summary, work.done)
        names = " ".join(assignments or ())
        screen.next(f"tritonlab class status {names}".rstrip(), "Next: ")
    return EXIT_FAILED if summary.failed else 0


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    index, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= index <= count:
        raise TritonlabError(f"'{text}' is not a shard.",
                             "Write the part and their number, from 1/N to N/N, such as 3/20.")
    return index, count


def _workers(name: str, roots: Any, jobs: int | None) -> Any:
    """Returns the executor of that name; None for the local one."""
    if name == "local":
        return None
    if name != "ray":
        raise TritonlabError(f"No executor is called '{name}'.", "Name local or ray.")
    from tritonlab.classroom import ray_executor

    return ray_executor.start(roots, jobs)


@app.command()
@verb
def status(
    assignment: AssignmentNames = None,
    sort: Annotated[str, typer.Option(help="name, score or late.")] = "name",
    missing: Annotated[bool, typer.Option(
        "--missing", help="Only students without a submission.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Show the state and points of every student."""
    from tritonlab.classroom import grading
    from tritonlab.classroom.book import State
    from tritonlab.render import classroom as view

    if sort not in view.SORTS:
        raise TritonlabError(f"'{sort}' is not an order.", f"Name one of {', '.join(view.SORTS)}.")
    the_class = _load_students(quick=True)
    warn(*the_class.book.problems,
         *map(str, grading.errors_of(the_class.settings, the_class.root)))
    tables = {one.name: sorted(the_class.scores(one), key=view.SORTS[sort])
              for one in the_class.assignments(assignment or ())}
    if missing:
        tables = {name: [score for score in scores if score.state is State.MISSING]
                  for name, scores in tables.items()}
    show(as_json, plain, {"schema": 1, "assignments": {
        name: [view.score_to_dict(score) for score in scores]
        for name, scores in tables.items() if as_json}},
        lambda screen: view.show_status(screen, the_class, tables), _after_status(tables))
    return 0


def _after_status(tables: "Mapping[str, list[Score]]") -> str:
    """Returns the command that comes next in the work on a class."""
    from tritonlab.classroom.book import State

    states = {score.state for scores in tables.values() for score in scores}
    name = next(iter(tables), "ASSIGNMENT")
    if states <= {State.MISSING}:
        return f"tritonlab class import {name} FOLDER"
    return "tritonlab class grade" if State.WAITING in states else \
        f"tritonlab class report {name} --html reports"


@app.command("show")
@verb
def show_(
    student: StudentId,
    assignment: AssignmentNames = None,
    diff: Annotated[bool, typer.Option(
        "--diff", help="Show what changed from one submission to the next.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Show a student's submissions, verdicts and first failures."""
    from tritonlab.render import classroom as view

    the_class = _load_students()
    one = the_class.student(student)
    assignments = the_class.assignments(assignment or ())
    entries = [entry for each in assignments for entry in view.entries(the_class, one.id, each)]
    show(as_json, plain,
         {"schema": 1, "student": one.id, "scores": [
             view.score_to_dict(the_class.book.score(one.id, each)) for each in assignments],
          "submissions": [entry.to_dict() for entry in entries]},
         lambda screen: view.show_student(screen, the_class, one, assignments, entries, diff),
         "tritonlab class status")
    return 0


@app.command()
@verb
def extend(
    student: StudentId, assignment: AssignmentName,
    until: Annotated[str, typer.Option(metavar="TIME", help="The new due time.")] = "",
    reason: Reason = "",
    undo: Undo = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Give one student more time."""
    from tritonlab.classroom import classroom

    the_class = _load_students()
    if undo:
        return _undo(the_class, "extended", student, assignment, reason, as_json, plain)
    if not until:
        raise TritonlabError("The new due time is missing.", "Add --until 2026-10-14T23:59.")
    time_ = classroom.parse_time(until, the_class.settings)
    its = the_class.settings.assignment(assignment)
    if its.due is None:
        raise TritonlabError(f"{its.name} has no due time.", "Add `due` to class.toml.")
    if time_ < its.due:
        raise TritonlabError(
            f"The new due time is before that of {its.name}, "
            f"{its.due.astimezone(the_class.settings.zone):%Y-%m-%d %H:%M}.", "Name a later one.")
    return _rule(the_class, "extended", student, assignment, reason, as_json, plain,
                 until=time_.isoformat())


@app.command()
@verb
def excuse(
    student: StudentId, assignment: AssignmentName, reason: Reason = "", undo: Undo = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Excuse one student from an assignment, which then has no points."""
    if undo:
        return _undo(_load_students(), "excused", student, assignment, reason, as_json, plain)
    return _rule(_load_students(), "excused", student, assignment, reason, as_json, plain)


@app.command()
@verb
def override(
    student: StudentId, assignment: AssignmentName,
    points: Annotated[float | None, typer.Option(min=0, help="The points that count.")] = None,
    reason: Reason = "",
    undo: Undo = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Set the points of one student's assignment by hand."""
    the_class = _load_students()
    if undo:
        return _undo(the_class, "overridden", student, assignment, reason, as_json, plain)
    if points is None:
        raise TritonlabError("The points are missing.", "Add --points P.")
    most = the_class.settings.assignment(assignment).points
    if not points <= most:
        raise TritonlabError(f"{assignment} has {most:g} points, and {points:g} are more.",
                             f"Name at most {most:g}.")
    return _rule(the_class, "overridden", student, assignment, reason, as_json, plain,
                 points=points)


def _undo(the_class: "Classroom", decision: str, student: str, assignment: str, reason: str,
          as_json: bool, plain: bool) -> int:
    """Takes an instructor's decision back, if it is the one that counts."""
    one = the_class.student(student)
    its = the_class.settings.assignment(assignment)
    if (one.id, its.name) not in getattr(the_class.book, decision):
        raise TritonlabError(f"{its.name} of {one.id} is not {decision}.",
                             f"`tritonlab class show {shlex.quote(one.id)}` shows what counts.")
    return _rule(the_class, "undone", one.id, its.name, reason, as_json, plain, decision=decision)


def _rule(the_class: "Classroom", event: str, student: str, assignment: str, reason: str,
          as_json: bool, plain: bool, **details: Any) -> int:
    """Appends an instructor's decision to the log and shows the score that follows."""
    from tritonlab.classroom import book
    from tritonlab.render import classroom as view

    if not reason.strip():
        raise TritonlabError("The reason is missing; it is kept in the log.",
                             'Add --reason "TEXT".')
    one = the_class.student(student)
    its = the_class.settings.assignment(assignment)
    log = the_class.store.append({"event": event, "student": one.id, "assignment": its.name,
                                  "reason": reason.strip(), **details})
    score = book.read(the_class.settings, log).score(one.id, its)
    show(as_json, plain, {"schema": 1, "score": view.score_to_dict(score)},
         lambda screen: view.show_ruling(screen, the_class, one, score),
         f"tritonlab class show {shlex.quote(one.id)}")
    return 0


@app.command("import")
@verb
def import_(
    assignment: AssignmentName,
    paths: Annotated[list[Path], typer.Argument(
        metavar="PATH...", help="Folders, archives or files with submissions.")],
    layout: Annotated[str, typer.Option(
        "--from", metavar="LAYOUT",
        help="auto, folder, flat, canvas, moodle, gradescope, classroom50, git, workspaces, ipynb "
             "or csv.")] = "auto",
    student_from: Annotated[str, typer.Option(
        "--student-from", metavar="REGEX",
        help="Take the student from the path: the group `student`, or the first one.")] = "",
    at: Annotated[str, typer.Option(
        "--at", metavar="TIME", help="The time of submission where the files show none.")] = "",
    dry_run: Annotated[bool, typer.Option(
        "--dry-run", help="Only show what would be imported.")] = False,
    strict: Annotated[bool, typer.Option(
        "--strict", help="Import nothing if a name is not in the roster.")] = False,
    add_students: Annotated[bool, typer.Option(
        "--add-students",
        help="Write the students that the submissions name to a roster.csv without students.",
    )] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Import submissions from an export, a folder or repositories; importing again is harmless."""
    from tritonlab.classroom import classroom, intake
    from tritonlab.render import classroom as view

    the_class = _load()
    its = the_class.settings.assignment(assignment)
    default: datetime | None = classroom.parse_time(at, the_class.settings) if at else None
    started = time.monotonic()
    result = intake.take(the_class, its, paths, layout=layout, student_from=student_from,
                         at=default, dry_run=dry_run, strict=strict, add_students=add_students)
    seconds = time.monotonic() - started
    if not result.n_read:
        raise TritonlabError(
            f"Nothing in {', '.join(map(shown, paths))} has the layout {layout}.",
            "Leave out `--from` to have the layout recognized.")
    command = f"tritonlab class grade {its.name}"
    if not result.imported and not result.unchanged:
        command = f"tritonlab class status {its.name}"
    elif dry_run:
        options = [] if layout == "auto" else ["--from", layout]
        options += ["--student-from", student_from] if student_from else []
        options += ["--at", at] if at else []
        options += ["--add-students"] if add_students else []
        command = shlex.join(["tritonlab", "class", "import", its.name, *map(str, paths), *options])
    show(as_json, plain, {**result.to_dict(), "seconds": round(seconds, 2)},
         lambda screen: view.show_intake(screen, the_class, result, dry_run), command)
    return EXIT_FAILED if result.unmatched or result.refused else 0


@app.command()
@verb
def export(
    assignments: Annotated[list[str] | None, typer.Argument(
        metavar="ASSIGNMENT", help="An assignment of class.toml; for gradebook several, or all.",
        autocompletion=_assignments)] = None,
    to: Annotated[str, typer.Option(
        metavar="TARGET", help="canvas, moodle, csv, gradebook, jsonl, junit, gradescope or "
        "classroom50.")] = "csv",
    fill: Annotated[Path | None, typer.Option(
        metavar="FILE", help="The file that Canvas or Moodle exported, to be filled in.")] = None,
    column: Annotated[str, typer.Option(
        metavar="TITLE", help="The column of Canvas's file. Default: the assignment's name.")] = "",
    out: Annotated[Path | None, typer.Option(
        "--out", metavar="PATH", help="Where to write. Default: the folder exports of the class."
    )] = None,
    only_changed: Annotated[bool, typer.Option(
        "--only-changed", help="Only points that differ from the last export to the same target."
    )] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Write points for another system, or fill them in the file that it exported.

    Exits with 1 when students are left out, which are named.
    """
    from tritonlab.classroom.export import export as exports

    the_class = _load_students()
    names = assignments or []
    if to == exports.GRADEBOOK:
        if fill or column or only_changed:
            raise TritonlabError("A gradebook is written anew, with all points.",
                                 "Leave out --fill, --column and --only-changed.")
        return _export_gradebook(the_class, names, out, as_json, plain)
    if len(names) != 1:
        raise TritonlabError(f"An export to {to} is of one assignment.",
                             f"Name one of {', '.join(the_class.settings.assignments)}; "
                             "--to gradebook has a column for each.")
    its = the_class.settings.assignment(names[0])
    warn(*the_class.book.problems)
    result = exports.make(the_class.settings, the_class.roster, the_class.store, the_class.book,
                          its, to, source=fill, column=column, only_changed=only_changed)
    place = out or exports.default_place(the_class.root, its, to)
    folder = not exports.ENDINGS[to]
    nothing = not result.scores and only_changed
    paths = [] if nothing else exports.save(the_class.store, the_class.book, its, to, result, place)
    sentence = f"No points changed since the last export to {to}, so nothing was written."
    if not nothing:
        without = len(result.scores) - len(paths) if folder else 0
        rest = f" {plural(without, 'student')} without a file: excused, or nothing handed in."
        count = len(paths) if folder else len(result.scores)
        sentence = f"The points of {plural(count, 'student')} are in {shown(place)}."
        sentence += rest * bool(without)
    show(as_json, plain, {
        "schema": 1, "assignment": its.name, "to": to, "files": [str(path) for path in paths],
        "scores": result.scores, "problems": result.problems, "notes": result.notes},
        lambda screen: screen.line(sentence),
        f"tritonlab class status {its.name}")
    if not as_json:
        warn(*result.notes, *result.problems)
    return EXIT_FAILED if result.problems else 0


def _export_gradebook(the_class: "Classroom", names: list[str], out: Path | None,
                      as_json: bool, plain: bool) -> int:
    """Writes a table with a column for each assignment."""
    from tritonlab.classroom.export import export as exports

    its = the_class.assignments(names)
    warn(*the_class.book.problems)
    results = exports.gradebook(the_class.roster, the_class.book, its)
    place = out or the_class.root / "exports" / f"{exports.GRADEBOOK}.csv"
    for one, result in zip(its, results, strict=True):
        exports.save(the_class.store, the_class.book, one, exports.GRADEBOOK, result, place)
    scores = {one.name: result.scores for one, result in zip(its, results, strict=True)}
    problems = [problem for result in results for problem in result.problems]
    show(as_json, plain, {
        "schema": 1, "assignments": list(scores), "to": exports.GRADEBOOK, "files": [str(place)],
        "scores": scores, "problems": problems},
        lambda screen: screen.line(f"The points of {plural(len(its), 'assignment')} are in "
                                   f"{shown(place)}."), "tritonlab class status")
    if not as_json:
        warn(*problems)
    return EXIT_FAILED if problems else 0


@app.command()
@verb
def similar(
    assignment: AssignmentName,
    html: Annotated[Path | None, typer.Option(
        "--html", metavar="FILE", help="Write a page with the sources side by side.")] = None,
    against: Annotated[list[Path] | None, typer.Option(
        "--against", metavar="DIR",
        help="Also compare with earlier submissions, or with another class; may be repeated.",
    )] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Rank pairs of submissions by what is rare in the class: evidence, never a verdict."""
    from tritonlab.classroom import grading
    from tritonlab.classroom.similarity import clusters, compare, page, submissions
    from tritonlab.render import classroom as view
    from tritonlab.workspace import output_files

    the_class = _load_students()
    its = the_class.settings.assignment(assignment)
    warn(*the_class.book.problems)
    output_files.check(html)
    course, _ = grading.course_of(the_class.settings, the_class.root)
    modules = [page.ModulePage(one.module, compare.compare(one.submissions, one.given, one.earlier),
                               one.sources, one.notes)
               for one in submissions.gather(the_class, course, its, against or ())]
    try:
        clusters.save(the_class.store, the_class.book, its.name, the_class.scores(its),
                      {one.module: one.similarity for one in modules})
    except NotSaved as error:  # only the report needs it
        warn(str(error))
    if html is not None:
        output_files.write(page.page(f"{the_class.settings.name}: {its.name}", modules,
                                     lambda student: str(the_class.roster.get(student) or student)),
                           html)
    pair = next((one.students for module in modules for one in module.similarity.pairs), ())
    command = f"tritonlab class report {its.name} --html reports"
    if pair and html is None:
        command = f"tritonlab class similar {its.name} --html similar.html"
    elif not any(module.similarity.n_students for module in modules):
        command = f"tritonlab class import {its.name} FOLDER"
    show(as_json, plain, {
        "schema": 1, "assignment": its.name, "page": str(html) if html else None,
        "modules": [view.similarity_to_dict(one) for one in modules]},
        lambda screen: view.show_similar(screen, its.name, modules, html), command)
    return 0


@app.command()
@verb
def mistakes(
    assignment: AssignmentName,
    unexplained: Annotated[bool, typer.Option(
        "--unexplained", help="Only failures that no mutant explains.")] = False,
    as_toml: Annotated[bool, typer.Option(
        "--toml", help="Print the skeletons of the mutants that are missing.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Show what is common in the failures of a class, and which failures no mutant explains."""
    from tritonlab.classroom import grading
    from tritonlab.classroom import mistakes as analysis
    from tritonlab.classroom.report.outcomes import ResultViews
    from tritonlab.classroom.report.people import People
    from tritonlab.render import classroom as view

    if as_toml and as_json:
        raise TritonlabError("--toml and --json exclude each other.",
                             "Repeat the command with one of them.")
    the_class = _load_students()
    its = the_class.settings.assignment(assignment)
    warn(*the_class.book.problems)
    course, _ = grading.course_of(the_class.settings, the_class.root)
    scores = the_class.scores(its)
    people = People(the_class.store, the_class.roster, [score.student for score in scores])
    results = ResultViews(the_class.store)
    modules = [analysis.of_module(the_class.store, results, course.find(name), scores,
                                  people.masked) for name in its.modules]
    if as_toml:
        print("\n".join(f"# For {shown(one.file)}\n\n"
                        f"{analysis.toml(one.mistakes.unexplained, one.mutants)}"
                        for one in modules if one.mistakes.unexplained) or
              "# A mutant explains each failure.")
        return 0
    command = f"tritonlab class report {its.name} --html reports"
    if any(one.mistakes.unexplained for one in modules):
        command = f"tritonlab class mistakes {its.name} --toml"
    elif not any(one.mistakes.graded for one in modules):
        command = f"tritonlab class grade {its.name}"
    show(as_json, plain, {
        "schema": 1, "assignment": its.name,
        "modules": [view.mistakes_to_dict(one) for one in modules]},
        lambda screen: view.show_mistakes(screen, its.name, modules, explained=not unexplained),
        command)
    return 0


@app.command()
@verb
def doctor(as_json: Json = False, plain: Plain = False) -> int:
    """Check isolation, cores, disk, versions, the roster and the records of a class."""
    from dataclasses import asdict

    from tritonlab.doctor import class_checks
    from tritonlab.doctor.environment_checks import Status
    from tritonlab.render import doctor as view

    checks = class_checks.examine(_load())
    show(as_json, plain, {"schema": 1, "checks": [
        {**asdict(check), "state": str(check.state)} for check in checks]},
        lambda screen: view.show_checks(screen, checks), "tritonlab class status")
    return EXIT_FAILED if any(check.state is Status.BAD for check in checks) else 0


@app.command()
@verb
def report(
    assignments: AssignmentNames = None,
    folder: Annotated[Path | None, typer.Option(
        "--html", metavar="DIR", help="The folder of the pages.")] = None,
    anonymous: Annotated[bool, typer.Option(
        "--anonymous", help="Show letters instead of names; the same student keeps them.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Write pages about the class: an overview, and one page a student."""
    from tritonlab.classroom import classroom, grading, mistakes
    from tritonlab.classroom.report import pages

    if folder is None:
        raise TritonlabError("The folder of the pages is missing.", "Add --html DIR.")
    the_class = _load_students()
    warn(*the_class.book.problems)
    its = the_class.assignments(assignments or ())
    course, _ = grading.course_of(the_class.settings, the_class.root)
    result = pages.build(the_class.settings, the_class.book, the_class.store, the_class.roster,
                         its, classroom.starters(course, its), mistakes.mutants_of(course, its),
                         anonymous=anonymous)
    pages.write(folder, result)
    index = folder / pages.INDEX
    show(as_json, plain, {"schema": 1, "index": str(index), "pages": len(result)},
         lambda screen: screen.line(f"{shown(index)} and the pages of "
                                    f"{plural(len(result) - 1, 'student')} are written."),
         f"tritonlab class feedback {its[0].name} --out feedback")
    return 0


@app.command()
@verb
def feedback(
    assignment: AssignmentName,
    folder: Annotated[Path | None, typer.Option(
        "--out", metavar="DIR", help="The folder of the files, one a student.")] = None,
    form: Annotated[str, typer.Option("--format", help="html or md.")] = "html",
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Write feedback, one file a student, with as much as the assignment reveals."""
    from tritonlab.classroom.report import feedback as writer
    from tritonlab.classroom.settings import SETTINGS

    forms = [one for one in writer.FORMATS if one == form]
    if not forms:
        raise TritonlabError(f"'{form}' is not a format of feedback.", "Name html or md.")
    if folder is None:
        raise TritonlabError("The folder of the feedback is missing.", "Add --out DIR.")
    the_class = _load_students()
    its = the_class.settings.assignment(assignment)
    warn(*the_class.book.problems)
    names = writer.write(the_class.settings, the_class.book, the_class.store, its,
                         the_class.ids(its.name), folder, forms[0])
    show(as_json, plain, {"schema": 1, "folder": str(folder), "files": names},
         lambda screen: screen.line(f"The feedback of {plural(len(names), 'student')} is in "
                                    f"{shown(folder)}, with what reveal = \"{its.reveal}\" of "
                                    f"{SETTINGS} allows."),
         f"tritonlab class status {its.name}")
    return 0


@app.command()
@verb
def pack(
    assignment: AssignmentName,
    target: Annotated[str, typer.Option(
        "--for", metavar="TARGET",
        help="gradescope, classroom50, github-actions, docker or student.")] = "",
    out: Annotated[Path | None, typer.Option(
        "--out", metavar="PATH",
        help="What to write: a zip for Gradescope, else a folder. Default: in the folder packs.",
    )] = None,
    torch_index: Annotated[str, typer.Option(
        "--torch-index", metavar="URL", help="The package index of PyTorch for CPUs. Default: "
        "PyTorch's own.")] = "",
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Build an assignment for an autograder, a workflow, an image, or students."""
    from tritonlab.classroom import settings
    from tritonlab.classroom.pack import build
    from tritonlab.classroom.store import Store

    root = settings.find()
    loaded, store = settings.load(root), Store(root)
    store.create()
    its = loaded.assignment(assignment)
    packed = build.of_assignment(loaded, store, its, target,
                                 torch_index=torch_index or build.TORCH_INDEX)
    place = out or build.default_place(root, its.name, target)
    show_pack(packed, place, as_json, plain, f"tritonlab class status {its.name}",
              {"assignment": its.name, "for": target})
    return 0


def show_pack(packed: "Pack", place: Path, as_json: bool, plain: bool, command: str,
              more: Mapping[str, Any]) -> None:
    """Writes a pack and shows where it is and what it lacks."""
    from tritonlab.classroom.pack import build

    files = build.write(packed, place)
    notes = packed.left_out

    def view(screen: Any) -> None:
        screen.line(f"{shown(place)} is written.")
        for note in notes:
            screen.line(note)

    show(as_json, plain, {"schema": 1, **more, "path": str(place),
                          "files": [str(file) for file in files], "left_out": list(notes)},
         view, command)


@app.command("grade-one", hidden=True)
@verb
def grade_one(
    folder: Annotated[Path, typer.Argument(metavar="PACK", help="The folder class/ of a pack.")],
    submission: Annotated[Path, typer.Argument(help="The folder of the student's files.")],
    target: Annotated[str, typer.Option(
        "--for", metavar="TARGET", help="gradescope or classroom50.")] = "gradescope",
    metadata: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Gradescope's submission_metadata.json.")] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file of results."),
                   ] = Path("results.json"),
) -> int:
    """Grade one submission where a pack is installed; autograders run this."""
    from tritonlab.classroom.pack import single
    from tritonlab.cli import output_formats
    from tritonlab.workspace import output_files

    if target not in ("gradescope", "classroom50"):
        raise TritonlabError(f"'{target}' is not an autograder.", "Name gradescope or classroom50.")
    output_files.check(out, output_formats.OutputFormat(target).kind)
    commit = output_formats.graded_commit() if target == "classroom50" else None
    output_files.write(single.grade(folder, submission, target, metadata=metadata, commit=commit),
                       out, output_formats.OutputFormat(target).kind)
    return 0
