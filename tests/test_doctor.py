"""`tritonlab doctor`: what it finds, what it says when something is missing, and its attacks."""

from __future__ import annotations

import functools
import json
import platform
from importlib import metadata

import pytest
import simulated

import grader
from grader import hardware, probe
from grader.report import Finding
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

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
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


def with_gpu(monkeypatch, found: probe.Probe) -> doctor.Diagnosis:
    simulated.install(monkeypatch, simulated.Simulated())
    monkeypatch.setattr(probe, "probe", lambda box, tell: found)
    return doctor.examine()


def test_a_gpu_is_shown_with_its_ceilings_and_what_it_decides(machine, monkeypatch) -> None:
    found = with_gpu(monkeypatch, probe.Probe(simulated.H200, simulated.CEILINGS))

    assert check(found, "GPU").seen == \
        "NVIDIA H200, 139 GiB, compute capability 9.0, driver 580.65"
    assert check(found, "ceilings").seen == \
        "copies 4,282 GB/s, multiplies 790 TFLOP/s in float16; measured on 2026-11-22"
    assert "the evidence level fast" in found.decides[-1]
    assert found.leaves_open == ()


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

    found = with_gpu(monkeypatch, probe.Probe(simulated.H200, unusable="it did not compile."))

    ran = check(found, "kernels on the GPU")
    assert (ran.state, ran.seen) == (doctor.State.NOTE, "cannot be run: it did not compile.")
    assert remedy in ran.remedy
    assert found.exit_code == 0
    assert "no kernel runs on it yet" in found.leaves_open[0]


@pytest.mark.parametrize(("names", "driverless", "hidden", "seen"), [
    ((), False, "0", "none was found"),
    ((), True, "0", "no driver serves it"),
    (("NVIDIA H200",), False, "", "hidden by CUDA_VISIBLE_DEVICES"),
], ids=["none", "no driver", "hidden"])
def test_why_no_gpu_is_used_is_said(machine, monkeypatch, names, driverless, hidden, seen) -> None:
    monkeypatch.setattr(hardware, "names", lambda: names)
    monkeypatch.setattr(hardware, "without_driver", lambda: driverless)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)

    found = doctor.examine()

    assert seen in check(found, "GPU").seen
    assert found.leaves_open == ("how fast a kernel is: that takes a GPU",)


def test_the_cuda_of_torch_is_read_from_its_files() -> None:
    import torch

    assert doctor.cuda_version() == (torch.version.cuda or "")


def test_a_small_kernel_is_tried_on_the_gpu(sandbox, monkeypatch) -> None:
    simulated.install(monkeypatch, simulated.Simulated())

    assert probe.probe(sandbox) == probe.Probe(simulated.H200, simulated.CEILINGS)


@pytest.mark.parametrize(("broken", "says"), [
    ({"missing": "No driver."}, "No driver."),
    ({"stops": Finding("R03", "There is no C compiler.")}, "There is no C compiler."),
    ({"change": lambda result, run: result * 0}, "came out wrong"),
], ids=["no answer", "no compiler", "wrong"])
def test_a_gpu_that_runs_no_kernel_is_told_why(sandbox, monkeypatch, broken, says) -> None:
    simulated.install(monkeypatch, simulated.Simulated(**broken))

    found = probe.probe(sandbox)

    assert says in found.unusable
    assert found.ceilings is None


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
