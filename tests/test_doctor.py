"""`tritonlab doctor`: what it finds, what it says when something is missing, and its attacks."""

from __future__ import annotations

import functools
import json
import platform
from importlib import metadata

import pytest

import grader
from grader.sandbox import Isolation, SandboxBroken, attacks
from grader.sandbox.client import Sandbox
from tritonlab import doctor


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

    use(Healthy)
    return use


def check(found: doctor.Diagnosis, name: str) -> doctor.Check:
    return next(check for check in found.checks if check.name == name)


def test_a_healthy_machine_is_shown_with_versions_and_ranges(run, machine) -> None:
    shown = run("doctor", "--plain")

    assert shown.code == 0
    assert f"PASS python: {platform.python_version()}, supported is >=3.11" in shown.out
    assert f"PASS torch: {metadata.version('torch')}, supported is" in shown.out
    assert "PASS sandbox: tier 2: landlock ABI 7, seccomp, unprivileged user" in shown.out
    assert "This machine decides: right or wrong" in shown.out
    assert "It cannot decide: how fast a kernel is" in shown.out
    assert shown.out.endswith("Next: tritonlab doctor --attack\n")


def test_the_json_says_the_same(run, machine) -> None:
    said = json.loads(run("doctor", "--json").out)

    assert (said["ok"], said["isolation"]["tier"], said["attacks"]) == (True, 2, [])
    assert {one["name"] for one in said["checks"]} >= {
        "python", "torch", "triton", "numpy", "processor", "memory", "engine", "sandbox", "GPU"}
    assert {one["state"] for one in said["checks"]} <= {"PASS", "NOTE"}


def test_an_engine_that_does_not_start_is_a_failure_of_ours(run, machine) -> None:
    machine(SandboxBroken("The grader's helper process ended with status 1.\nTraceback (most "
                          "recent call last)\n  UnknownTriton: 4.0"))

    shown = run("doctor", "--plain")

    assert shown.code == 3
    assert "FAIL engine: The grader's helper process ended with status 1." in shown.out
    assert "Traceback" not in shown.out
    assert "It cannot decide: every verdict" in shown.out
    assert "This machine decides" not in shown.out


def test_what_the_sandbox_lacks_is_named_with_its_remedy(run, machine) -> None:
    class Bare(Healthy):
        isolation = Isolation(0, False, True, (("landlock", "Take Linux 5.13."),
                                               ("seccomp", "Take x86-64.")))

    machine(Bare)

    shown = run("doctor", "--plain")

    assert shown.code == 0
    assert "NOTE sandbox: separate processes with limits only, as root" in shown.out
    assert "Do not grade files of strangers here." in shown.out
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
    assert ("pip install 'triton" in found.remedy) == (state == "NOTE")


def test_a_library_that_is_not_there_is_a_failure(machine, monkeypatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "numpy":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)

    found = doctor.examine()

    assert check(found, "numpy").state == doctor.State.BAD
    assert found.exit_code == 3


def test_the_gpu_is_named_and_nothing_is_promised_of_it(machine, monkeypatch) -> None:
    monkeypatch.setattr(doctor, "_gpus", lambda: ("NVIDIA H100 80GB HBM3",))

    found = doctor.examine()

    assert check(found, "GPU").seen == "NVIDIA H100 80GB HBM3"
    assert "times none" in found.leaves_open[0]


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


def test_all_attacks_are_stopped_where_the_machine_confines(run) -> None:
    shown = run("doctor", "--attack", "--json")
    said = json.loads(shown.out)
    if said["isolation"]["tier"] < 2:
        pytest.skip(f"this machine does not confine: {said['isolation']['description']}")

    assert shown.code == 0
    assert len(said["attacks"]) == 26
    assert [one["name"] for one in said["attacks"] if one["succeeded"]] == []
