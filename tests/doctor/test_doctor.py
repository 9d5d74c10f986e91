"""`tritonlab doctor`: what it finds, what it says when something is missing, and its attacks."""

from __future__ import annotations

import functools
import json
import platform
import tempfile
from collections import namedtuple
from importlib import metadata
from pathlib import Path

import pytest

import grader
from grader import Sandbox, selfcheck
from grader.attacks import attacks
from grader.gpu import detect
from grader.report import Finding
from grader.sandbox import Isolation, SandboxBroken
from tests.support import simulated, toy
from tritonlab.doctor import doctor, environment_checks

GATE = toy.case("every launch compiles for the NVIDIA H100 SXM")
OUT_OF_BOUNDS = toy.case("part of a block", grader.Verdict.FAILED, finding=Finding(
    selfcheck.MISTAKE, "Element 100 of a tensor of 100 was read."))
FINE = toy.report((toy.case("two blocks"), toy.case("part of a block"), GATE))
CAUGHT = toy.report((toy.case("two blocks"), OUT_OF_BOUNDS, GATE))


class Healthy:
    """Stands in for a sandbox: it says how isolated it is, and forks nothing."""

    isolation = Isolation(7, True)

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """Put a sandbox in place of the real one: a class, or an exception that starting it raises."""

    def use(sandbox) -> None:
        def start():
            if isinstance(sandbox, Exception):
                raise sandbox
            return sandbox()

        monkeypatch.setitem(vars(grader), "Sandbox", start)

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(selfcheck, "run", lambda box, tell: selfcheck.Trial(FINE, CAUGHT))
    use(Healthy)
    return use


def check(found: doctor.Diagnosis, name: str) -> environment_checks.Check:
    return next(check for check in found.checks if check.name == name)


def test_a_healthy_machine_is_shown_with_versions_and_ranges(run, machine) -> None:
    shown = run("doctor", "--plain")

    assert shown.code == 0
    assert f"PASS python: {platform.python_version()}, supported is >=3.11" in shown.out
    assert f"PASS torch: {metadata.version('torch')}, supported is" in shown.out
    assert "PASS sandbox: tier 2: landlock ABI 7, seccomp, unprivileged user" in shown.out
    assert "PASS interpreter: a right kernel passed, and an out-of-bounds read" in shown.out
    assert "PASS compiler: a kernel was compiled for the NVIDIA H100 SXM" in shown.out
    assert "This machine decides correct: right or wrong" in shown.out
    assert "This machine decides efficient: the bytes that a kernel moves" in shown.out
    assert "It cannot decide fast: speed is measured only on an NVIDIA GPU.\n" \
           "On a machine with one, type `tritonlab grade --pending` in this workspace." in shown.out
    assert shown.out.endswith("Next: tritonlab doctor --attack\n")


def test_the_json_says_the_same(run, machine) -> None:
    said = json.loads(run("doctor", "--json").out)

    assert (said["ok"], said["isolation"]["tier"], said["attacks"]) == (True, 2, [])
    assert {one["name"] for one in said["checks"]} >= {
        "python", "torch", "triton", "numpy", "processor", "memory", "engine", "interpreter",
        "compiler", "sandbox", "GPU", "disk: workspace", "disk: cache", "disk: temporary",
        "course", "workspace", "editor", "terminal"}
    assert [(one["name"], one["decided"]) for one in said["levels"]] == [
        ("correct", True), ("efficient", True), ("fast", False)]
    assert {one["state"] for one in said["checks"]} <= {"PASS", "NOTE"}


def test_an_engine_that_does_not_start_is_a_failure_of_ours(run, machine) -> None:
    machine(SandboxBroken("The grader's helper process ended with status 1.\nTraceback (most "
                          "recent call last)\n  UnknownTriton: 4.0"))

    shown = run("doctor", "--plain")

    assert shown.code == 3
    assert "FAIL engine: The grader's helper process ended with status 1." in shown.out
    assert "Traceback" not in shown.out
    assert shown.out.count("no verdict can be trusted before this passes: engine") == 3
    assert "This machine decides" not in shown.out


def test_what_the_sandbox_lacks_is_named_with_its_remedy(run, machine) -> None:
    class Bare(Healthy):
        isolation = Isolation(0, False, True, (("landlock", "Take Linux 5.13."),
                                               ("seccomp", "Take x86-64.")))

    machine(Bare)

    shown = run("doctor", "--plain")

    assert shown.code == 0
    assert "NOTE sandbox: tier 0: separate processes with limits only, as root" in shown.out
    assert "Do not grade untrusted files on this machine." in shown.out
    assert "NOTE sandbox without landlock" in shown.out
    assert "Take Linux 5.13." in shown.out


@pytest.mark.parametrize(("version", "state"), [("3.9.0", "PASS"), ("3.9.0+git1", "PASS"),
                                                ("3.5.1", "NOTE"), ("4.0.0", "NOTE")])
def test_a_version_outside_the_range_is_noted(machine, monkeypatch, version, state) -> None:
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: version if name == "triton"
                        else real(name))

    found = check(doctor.examine(), "triton")

    assert found.state == state
    assert ("Type: pip install 'triton" in found.remedy) == (state == "NOTE")


def test_a_library_that_is_not_there_is_a_failure(machine, monkeypatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "numpy":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)

    found = doctor.examine()

    assert check(found, "numpy").state == environment_checks.Status.BAD
    assert found.exit_code == 3


@pytest.mark.parametrize(("right", "wrong", "name", "says"), [
    (toy.report((toy.case("two blocks", grader.Verdict.FAILED, finding=toy.WRONG),)), CAUGHT,
     "interpreter", "a right kernel did not pass (Row 3"),
    (toy.report((), reason="a process was killed"), CAUGHT, "interpreter", "a process was killed"),
    (FINE, FINE, "interpreter", "an out-of-bounds read was not detected"),
    (toy.report((*FINE.results[:2], toy.case(GATE.name, grader.Verdict.ERROR, reason="no ptxas"))),
     CAUGHT, "compiler", "no ptxas"),
], ids=["a right kernel fails", "nothing is graded", "a wrong one passes", "no compiler"])
def test_a_self_test_that_fails_leaves_nothing_to_be_decided(machine, monkeypatch, right, wrong,
                                                             name, says) -> None:
    monkeypatch.setattr(selfcheck, "run", lambda box, tell: selfcheck.Trial(right, wrong))

    found = doctor.examine()

    assert (check(found, name).state, found.exit_code) == (environment_checks.Status.BAD, 3)
    assert says in check(found, name).seen
    assert "Install tritonlab again" in check(found, name).remedy
    assert all(name in level.hindrance for level in found.levels)


def test_a_right_kernel_passes_and_a_wrong_one_is_caught_here(sandbox) -> None:
    tried = selfcheck.run(sandbox)

    assert (tried.interpreter, tried.compiler) == ("", "")
    assert (tried.right.exit_code, tried.wrong.exit_code) == (0, 1)


def test_a_machine_without_a_temporary_folder_is_told(machine, monkeypatch) -> None:
    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found")

    machine(FileNotFoundError(2, "No usable temporary directory found"))
    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    monkeypatch.setattr(attacks, "scene", nowhere)

    found = doctor.examine()

    for name in ("engine", "disk: temporary"):
        assert check(found, name).state == environment_checks.Status.BAD
        assert check(found, name).remedy.startswith("Set TMPDIR to a folder with some space")


def with_gpu(monkeypatch, found: selfcheck.Probe) -> doctor.Diagnosis:
    simulated.install(monkeypatch, simulated.Simulated())
    monkeypatch.setattr(selfcheck, "probe", lambda box, tell: found)
    return doctor.examine()


def test_a_gpu_is_shown_with_its_ceilings_and_what_it_decides(machine, monkeypatch) -> None:
    found = with_gpu(monkeypatch, selfcheck.Probe(simulated.H200, simulated.CEILINGS))

    assert check(found, "GPU").seen == \
        "NVIDIA H200, 139 GiB, compute capability 9.0, driver 580.65"
    assert check(found, "ceilings").seen == \
        "copies 4,282 GB/s, multiplies 790 TFLOP/s in float16; measured on 2026-11-22"
    assert [level.name for level in found.levels if not level.hindrance] == \
        ["correct", "efficient", "fast"]


@pytest.mark.parametrize(("cuda", "compiler", "headers", "remedy"), [
    ("", "gcc", True, "built without CUDA"),
    ("13.0", "", True, "install gcc"),
    ("13.0", "gcc", False, "python3-dev"),
    ("13.0", "gcc", True, "nvidia-smi"),
], ids=["no CUDA", "no compiler", "no headers", "nothing that is known"])
def test_a_gpu_that_cannot_be_used_comes_with_a_remedy(machine, monkeypatch, tmp_path, cuda,
                                                       compiler, headers, remedy) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(doctor, "cuda_version", lambda: cuda)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: name if name == compiler else None)
    monkeypatch.setattr(doctor.sysconfig, "get_path", lambda name: str(tmp_path))
    if headers:
        (tmp_path / "Python.h").touch()

    found = with_gpu(
        monkeypatch, selfcheck.Probe(simulated.H200, unusable="it did not compile."))

    ran = check(found, "kernels on the GPU")
    assert (ran.state, ran.seen) == (environment_checks.Status.NOTE,
                                     "cannot be run: it did not compile.")
    assert remedy in ran.remedy
    assert found.exit_code == 0
    [left] = [level for level in found.levels if level.hindrance]
    assert (left.name, "no kernel runs on it yet" in left.hindrance) == ("fast", True)


@pytest.mark.parametrize(("names", "driverless", "hidden", "seen"), [
    ((), False, "0", "none was found"),
    ((), True, "0", "but no driver for it"),
    (("NVIDIA H200",), False, "", "hidden by CUDA_VISIBLE_DEVICES"),
], ids=["none", "no driver", "hidden"])
def test_why_no_gpu_is_used_is_said(machine, monkeypatch, names, driverless, hidden, seen) -> None:
    monkeypatch.setattr(detect, "names", lambda: names)
    monkeypatch.setattr(detect, "without_driver", lambda: driverless)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)

    found = doctor.examine()

    assert seen in check(found, "GPU").seen
    [left] = [level for level in found.levels if level.hindrance]
    assert left.hindrance == "speed is measured only on an NVIDIA GPU"


def test_the_cuda_of_torch_is_read_from_its_files() -> None:
    import torch

    assert doctor.cuda_version() == (torch.version.cuda or "")


def test_a_small_kernel_is_tried_on_the_gpu(sandbox, monkeypatch) -> None:
    simulated.install(monkeypatch, simulated.Simulated())

    assert selfcheck.probe(sandbox) == selfcheck.Probe(simulated.H200, simulated.CEILINGS)


@pytest.mark.parametrize(("broken", "says"), [
    ({"missing": "No driver."}, "No driver."),
    ({"stops": Finding("R03", "There is no C compiler.")}, "There is no C compiler."),
    ({"change": lambda result, run: result * 0}, "returned wrong values"),
], ids=["did not reply", "no compiler", "wrong"])
def test_a_gpu_that_runs_no_kernel_is_told_why(sandbox, monkeypatch, broken, says) -> None:
    simulated.install(monkeypatch, simulated.Simulated(**broken))

    found = selfcheck.probe(sandbox)

    assert says in found.unusable
    assert found.ceilings is None


# ------------------------------------------------------------ disks, terminal, editor, record


@pytest.mark.parametrize(("free", "short"), [
    (1 << 30, []),
    (100 << 20, ["disk: temporary"]),
    (20 << 20, ["disk: cache", "disk: temporary"]),
    (1 << 20, ["disk: workspace", "disk: cache", "disk: temporary"]),
])
def test_disks_that_are_nearly_full_are_noted(home, monkeypatch, free, short) -> None:
    usage = namedtuple("usage", "total used free")(1 << 40, 0, free)
    monkeypatch.setattr(environment_checks.shutil, "disk_usage", lambda folder: usage)

    checks = environment_checks.disks()

    assert [one.name for one in checks if one.state is environment_checks.Status.NOTE] == short
    assert all(one.remedy for one in checks if one.name in short)
    assert len(checks) == 3


def test_a_real_disk_that_is_full_is_noted(home, small_disk, monkeypatch) -> None:
    with small_disk("64k") as folder:
        monkeypatch.setenv("TRITONLAB_WORKSPACE", str(folder / "work"))

        found = environment_checks.disks()[0]

    assert found.state is environment_checks.Status.NOTE
    assert f"64 KiB free in {folder}, 10.0 MiB should be" in found.seen
    assert "set TRITONLAB_WORKSPACE to a folder elsewhere" in found.remedy


@pytest.mark.parametrize(("terminal", "state", "says"), [
    ((True, True, 100, "utf-8"), "PASS", "color, 100 columns, UTF-8"),
    ((True, False, 100, "utf-8"), "PASS", "no color; words convey the same"),
    ((False, False, 80, "utf-8"), "PASS", "no terminal"),
    ((True, True, 100, "ascii"), "NOTE", "LANG=C.UTF-8"),
    ((True, True, 40, "utf-8"), "NOTE", "Widen it to 60 columns"),
], ids=str)
def test_what_a_terminal_lacks_comes_with_a_remedy(terminal, state, says) -> None:
    found = environment_checks.display(*terminal)

    assert found.state == state
    assert says in f"{found.seen} {found.remedy}"


@pytest.mark.parametrize(("variables", "state", "says"), [
    ({"EDITOR": "sh -n"}, "PASS", "sh, named by EDITOR; it needs the terminal"),
    ({"VISUAL": "nothing-of-this-name", "EDITOR": "sh"}, "NOTE", "which cannot be started. sh,"),
    ({}, "NOTE", "export EDITOR=nano"),
], ids=["named", "misnamed", "none"])
def test_the_editor_that_would_be_opened_is_told(monkeypatch, variables, state, says) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    if not variables:
        monkeypatch.setenv("PATH", "/nowhere")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    found = environment_checks.editors()

    assert found.state == state
    assert says in f"{found.seen} {found.remedy}"


def recorded() -> dict[str, environment_checks.Check]:
    return {one.name: one for one in environment_checks.record()}


def test_a_workspace_and_its_journal_are_looked_at(run) -> None:
    before = recorded()
    run("start", "softmax")
    after = recorded()

    assert before["course"].seen == "2 modules in 4 tracks"
    assert "`tritonlab start track1/copy` makes it" in before["workspace"].seen
    assert after["journal"].seen == "1 record, none damaged"
    assert {one.state for one in after.values()} == {environment_checks.Status.GOOD}


def test_damaged_lines_of_the_journal_are_counted_and_explained(run) -> None:
    run("start", "softmax")
    with Path("tritonlab-workspace/.tritonlab/journal.jsonl").open("a") as file:
        file.write("rubbish\n")

    found = recorded()["journal"]

    assert found.state is environment_checks.Status.NOTE
    assert found.seen == "1 record. Line 2 of the journal is damaged; only that record is lost."
    assert "nothing has to be fixed" in found.remedy


def test_a_journal_that_cannot_be_read_is_told(run) -> None:
    run("start", "softmax")
    journal = Path("tritonlab-workspace/.tritonlab/journal.jsonl")
    journal.unlink()
    journal.mkdir()

    found = recorded()["journal"]

    assert found.state is environment_checks.Status.NOTE
    assert found.seen.startswith(
        "The journal cannot be read: there is a folder where a file is needed")
    assert found.remedy == "Move that folder away, then repeat the command."


def test_a_workspace_that_cannot_be_written_is_told(run, monkeypatch) -> None:
    run("start", "softmax")
    # root may write anywhere
    monkeypatch.setattr(environment_checks.os, "access", lambda path, mode: False)

    found = recorded()

    assert [found[name].state for name in ("workspace", "journal")] == \
        [environment_checks.Status.NOTE] * 2
    assert "make it writable" in found["workspace"].remedy


def test_a_course_that_cannot_be_read_is_told(home, course_root) -> None:
    (course_root / "tracks/missing-elements/track.toml").write_text("number = ")

    [found] = environment_checks.record()

    assert (found.name, found.state) == ("course", environment_checks.Status.BAD)
    assert found.remedy == "Correct the syntax, or install tritonlab again."


# ------------------------------------------------------------ attacks


def test_attacks_that_succeed_are_shown_and_fail_the_command(run, machine, monkeypatch) -> None:
    machine(functools.partial(Sandbox, without=("user", "landlock", "seccomp")))
    chosen = ("read a hidden test", "forge the certificate", "leave a process behind")
    monkeypatch.setattr(attacks, "ATTACKS",
                        tuple(one for one in attacks.ATTACKS if one.name in chosen))

    shown = run("doctor", "--attack", "--plain")

    assert shown.code == 1
    assert "1 of 3 were stopped" in shown.out
    assert "SUCCEEDED: read a hidden test: the secret came back" in shown.out
    assert "SUCCEEDED: forge the certificate: the certificate was changed" in shown.out
    assert "stopped: leave a process behind" in shown.out


def test_all_attacks_are_stopped_where_the_machine_confines(run, warm) -> None:
    shown = run("doctor", "--attack", "--json")
    said = json.loads(shown.out)
    if said["isolation"]["tier"] < 2:
        pytest.skip(f"this machine does not confine: {said['isolation']['description']}")

    assert shown.code == 0
    assert len(said["attacks"]) == 26
    assert [one["name"] for one in said["attacks"] if one["succeeded"]] == []
