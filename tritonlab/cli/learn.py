"""The verbs of the learner's loop: start, next, read, hint, reset and solution."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tritonlab.cli.boundary import agreed, onward, show, show_error, verb, warn
from tritonlab.cli.options import Function, Json, ModuleId, OptionalId, Plain
from tritonlab.course import course
from tritonlab.course.course import ENGLISH, Course, Module
from tritonlab.errors import TritonlabError
from tritonlab.grading import hints
from tritonlab.progress import certificate
from tritonlab.progress.journal import JournalReading
from tritonlab.workspace import course_choice, editor, output_files, workspace
from tritonlab.workspace import start as begin
from tritonlab.workspace.submission import current, exercise, own
from tritonlab.workspace.workspace import Workspace

Language = Annotated[str, typer.Option(
    "--lang", metavar="LANG", help="A language that the course is translated to, such as de.")]

Edit = Annotated[bool, typer.Option(
    "--edit", help="Open the exercise in $VISUAL, $EDITOR, VS Code, or an editor that is found.")]


@verb
def start(module_id: ModuleId, edit: Edit = False, as_json: Json = False,
          plain: Plain = False) -> int:
    """Copy a module's exercise into your workspace; your own work is never overwritten."""
    the_course = course_choice.load()
    return _begin(the_course, the_course.find(module_id), edit, as_json, plain)


@verb
def next_(edit: Edit = False, as_json: Json = False, plain: Plain = False) -> int:
    """Start the next module in order that you have not passed.

    After a pass that is the first one of the course, so that nothing is left behind. Where the
    current module is open, that one is left for later, and the next behind it is started; behind
    the last comes the first. Electives come once no core module is left, except warm-ups, which
    come before the module that they prepare for.
    """
    the_course = course_choice.load()
    place = workspace.find()
    reading = place.journal(the_course).read() if place else JournalReading(())
    here = place.module_here(the_course) if place else None
    following = begin.after(the_course, reading, here or the_course.get(reading.current))
    if following is not None:
        module, why = following
        return _begin(the_course, module, edit, as_json, plain, why)
    left = certificate.next_module(the_course, reading)
    sentence = "Only the current module is left to do." if left else \
        "You have passed every module that is ready."
    command = f"tritonlab grade {left.id}" if left else "tritonlab certificate"
    show(as_json, plain, {"schema": 1, "module": None, "said": sentence},
         lambda screen: screen.line(sentence), command)
    return 0


@verb
def read(
    module_id: OptionalId = None,
    answers: Annotated[bool, typer.Option(
        "--answers", help="After a pass, the answers to its three questions.")] = False,
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a page for a browser instead.")] = None,
    pager: Annotated[bool, typer.Option(
        "--pager/--no-pager", help="A screen at a time, where there is a terminal.")] = True,
    language: Language = ENGLISH,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Show the lesson of a module, or the page `grading` or `blackwell`."""
    from tritonlab.render import lesson as view

    the_course = course_choice.load()
    place = workspace.find()
    if module_id in course.PAGES:
        name, text, picture = module_id, course.page(module_id), ""
        title = text.partition("\n")[0].removeprefix("# ")
        command = "tritonlab grade"
    else:
        module = the_course.find(module_id) if module_id else \
            current(the_course, workspace.require(the_course.example))
        begun = place is not None and place.kernel(module).exists()
        command = f"tritonlab {'grade' if begun else 'start'} {module.id}"
        name, title = module.id, module.title
        picture = "" if answers else module.picture()
        text = _answers(the_course, place, module) if answers else module.lesson(language)
        if not answers and language != ENGLISH and not module.translated_lesson(language):
            warn(_untranslated(f"The lesson of {module.id}", language))
    output_files.check(html)
    if html is not None:
        from tritonlab.render import pages

        output_files.write(pages.lesson(name, title, text, picture), html)
    show(as_json, plain,
         {"schema": 1, "module": name, "title": title, "markdown": text,
          "page": str(html) if html else None},
         lambda screen: view.show(screen, name, text, html, paged=pager), command)
    return 0


def _untranslated(subject: str, language: str) -> str:
    return f"{subject} is not translated to '{language}', so it is shown in English."


def _answers(the_course: Course, place: Workspace | None, module: Module) -> str:
    """Returns the answers to the questions of a lesson.

    Raises:
        TritonlabError: the module is not passed, and its solution was not shown.
    """
    if module.public_only:
        raise TritonlabError(f"This build for students has no answers of {module.id}.",
                             f"`tritonlab read {module.id}` shows the questions.")
    reading = place.journal(the_course).read() if place else JournalReading(())
    shown_solution = any(record.event == "solution" and record.module == module.id
                         for record in reading.records)
    if not (shown_solution or certificate.build(the_course, reading).entry(module).done):
        raise TritonlabError(f"The answers are shown once {module.id} is passed.",
                             f"`tritonlab grade {module.id}` grades your work.")
    return module.answers()


@verb
def hint(
    module_id: OptionalId = None,
    todo: Annotated[int | None, typer.Option(help="The number of a TODO or DECIDE.")] = None,
    function: Function = None,
    language: Language = ENGLISH,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Show the next hint for a TODO, a function, or the last failure."""
    from tritonlab.render import exercise as view

    the_course, place, module = _meant(module_id)
    next_hint = hints.give(the_course, place, module, todo, function)
    if language != ENGLISH:
        group = next_hint.group.translated(language)
        warn("" if group else _untranslated("This hint", language))
        next_hint = replace(next_hint, group=group or next_hint.group)
    show(as_json, plain,
         {"schema": 1, "module": module.id, "group": next_hint.group.group,
          "rung": next_hint.rung, "of": len(next_hint.group.rungs), "text": next_hint.text},
         lambda screen: view.show_hint(screen, next_hint), next_hint.command)
    return warn(hints.record(the_course, place, next_hint))


@verb
def reset(
    module_id: OptionalId = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    undo: Annotated[bool, typer.Option(
        "--undo", help="Bring the newest backup back; what it replaces is kept too.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Replace your work with a fresh exercise; a dated backup keeps your work."""
    from tritonlab.render import exercise as view
    from tritonlab.workspace import reset as the_reset

    the_course, place, module = _meant(module_id)
    if not (yes or undo) and not agreed(
            f"Put a fresh exercise of {module.id} in the place of your work? It is kept in a "
            "backup.", f"Your work on {module.id} was left alone",
            f"`tritonlab reset {module.id} --yes` keeps it in a backup and puts a fresh exercise "
            "in its place."):
        return warn("Nothing was changed.")
    work = the_reset.undo if undo else the_reset.reset
    backup = work(the_course, place, module)
    show(as_json, plain,
         {"schema": 1, "module": module.id, "changed": backup.changed,
          "backup": str(backup.folder) if backup.folder else None, "moved": backup.names,
          "restored": str(backup.restored) if backup.restored else None,
          "recorded": backup.changed and backup.error is None},
         lambda screen: view.show_reset(screen, backup, place.folder(module)),
         own(module, place, the_course).typed("grade"),
         "Next: " if backup.restored else "Edit it, then type: ")
    if backup.error is not None:
        return show_error(backup.error)
    return warn(backup.warning)


@verb
def solution(
    module_id: OptionalId = None,
    give_up: Annotated[bool, typer.Option(
        "--give-up", help="Show it before a pass; the certificate will say so.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Compare your work with the reference solution, after a pass or when you give up."""
    from tritonlab.grading import solution_diff
    from tritonlab.render import exercise as view

    the_course, place, module = _meant(module_id)
    if module.public_only:
        raise TritonlabError(f"This build for students has no solution of {module.id}.",
                             f"`tritonlab hint {module.id}` helps without it.")
    submission = exercise(module, place, the_course)
    reading = place.journal(the_course).read()
    earned = solution_diff.earned(the_course, reading, module)
    if not (earned or give_up) and not agreed(
            f"{module.id} is not passed yet. Give up and see its solution? The certificate will "
            "say so of passes from then on.", f"{module.id} is not passed yet, and its solution is "
            "not shown before you give up", f"`tritonlab hint {module.id}` helps without it; "
            f"`tritonlab solution {module.id} --give-up` shows it, and the certificate says so of "
            "passes from then on."):
        return warn(f"Nothing was shown. `tritonlab hint {module.id}` helps another way.")
    files = solution_diff.compare(module, submission)
    warning = solution_diff.record(the_course, place, module)
    done = certificate.build(the_course, reading).entry(module).done
    command = onward(the_course, reading, module) if done else submission.typed("grade")
    show(as_json, plain,
         {"schema": 1, "module": module.id, "gave_up": not done,
          "files": [{"name": file.name, "same": file.same, "diff": "\n".join(file.unified)}
                    for file in files]},
         lambda screen: view.show_solution(screen, module, files), command,
         "Next: " if done else f"Write it yourself in {submission.to_edit}, then type: ")
    return warn(warning)


def _meant(module_id: str | None) -> tuple[Course, Workspace, Module]:
    """Returns the course, the workspace and the module of an optional id."""
    the_course = course_choice.load()
    place = workspace.require(the_course.example)
    place.check_course(the_course.id)
    module = the_course.find(module_id) if module_id else current(the_course, place)
    return the_course, place, module


def _begin(the_course: Course, module: Module, edit: bool, as_json: bool, plain: bool,
           why: str = "") -> int:
    from tritonlab.render import exercise as view

    begun = begin.begin(the_course, module)
    opened = editor.open_in_editor(begun.started.kernel, terminal_is_free=not as_json) \
        if edit else ""
    to_edit = " and ".join(f"{name}/" for name in module.packages) or "kernel.py"
    show(as_json, plain,
         {"schema": 1, "module": module.id, "kernel": str(begun.started.kernel),
          "copied": begun.started.copied, "kept": begun.started.kept,
          "missing_prerequisites": begun.missing,
          "warm_ups": [one.id for one in begun.warm_ups], "editor": opened or None},
         lambda screen: view.show_start(screen, begun, why, opened),
         begun.command, f"Edit {to_edit}, then type: ")
    return warn(begun.warning)
