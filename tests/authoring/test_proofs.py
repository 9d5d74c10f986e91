"""Kept proofs: the same files are proved once, a changed byte anew, a failure always."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from grader.gpu import detect
from grader.processes.cache import Cache
from tests.support import authored
from tritonlab.authoring import module_files, mutants, proofs, runner
from tritonlab.authoring.proofs import Fact

KINDS = ("tracks", "solutions", "suites")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITONLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "proofs"


@pytest.fixture
def made(tmp_path, cache):
    return authored.make(tmp_path / "mine")


def test_a_proof_is_made_once_for_the_same_files(made):
    runs = []

    first = proofs.faults(Fact("it holds", made.material, KINDS), lambda: runs.append(1) or ())
    again = proofs.faults(Fact("it holds", made.material, KINDS), lambda: runs.append(2) or ())

    assert (first, again, runs) == (((), False), ((), True), [1])


def test_a_failure_is_proved_anew_each_time(made, cache):
    fact, numbers = Fact("it holds", made.material, KINDS), iter("12")

    results = [proofs.faults(fact, lambda: [f"fault {next(numbers)}"]) for _ in range(2)]

    assert results == [(("fault 1",), False), (("fault 2",), False)]
    assert not cache.exists()


CHANGES = [
    ("tracks/kernel.py", "block_size = 1024", "block_size = 1025", {"tracks"}),
    ("tracks/lesson.py", "import torch", "import  torch", {"tracks"}),
    ("solutions/kernel.py", "block_size = 1024", "block_size = 1025", {"solutions"}),
    ("suites/suite.py", "rand(1_024)", "rand(1_023)", {"suites"}),
    ("suites/mutants.toml", "x * x, mask", "x * y, mask", {"suites"}),
]


@pytest.mark.parametrize(("name", "find", "put", "kinds"), CHANGES, ids=[c[0] for c in CHANGES])
def test_a_changed_byte_proves_anew_what_it_decides(made, name, find, put, kinds):
    for kind in KINDS:
        proofs.keep(Fact("it holds", made.material, (kind,)))

    made.edit(name, find, put)

    assert {kind for kind in KINDS
            if proofs.recall(Fact("it holds", made.material, (kind,))) is None} == kinds


def test_a_file_that_is_new_proves_anew(made):
    proofs.keep(Fact("it holds", made.material, ("suites",)))

    made.file("suites/data").mkdir()
    made.file("suites/data/more.json").write_text("1")

    assert proofs.recall(Fact("it holds", made.material, ("suites",))) is None


@pytest.mark.parametrize(("owner", "name", "value"), [
    (proofs, "_CODE", "another grader"), (proofs, "versions", lambda: {"triton": "9.0"}),
    (detect, "names", lambda: ["NVIDIA H200"]), (proofs.platform, "machine", lambda: "aarch64")])
def test_another_grader_version_or_machine_proves_anew(made, monkeypatch, owner, name, value):
    fact = Fact("it holds", made.material, KINDS)
    proofs.keep(fact, "a case")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    assert proofs.recall(fact) == "a case"
    monkeypatch.setattr(owner, name, value)
    assert proofs.recall(fact) is None


@pytest.mark.parametrize("other", [
    {"statement": "it holds in 4 more runs"}, {"kinds": KINDS[:2]}, {"conditions": ("seed",)}])
def test_another_statement_is_another_proof(made, other):
    fact = Fact("it holds in 2 more runs", made.material, KINDS)
    proofs.keep(fact)

    assert proofs.recall(replace(fact, **other)) is None


@pytest.mark.parametrize("name", ["grader.py", "engine/targets.toml"])
def test_all_code_counts_but_suites_and_caches(tmp_path, monkeypatch, name):
    for path in ("grader.py", "engine/targets.toml", "suites/suite.py", "a/__pycache__/a.pyc"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("1")
    monkeypatch.setattr(proofs, "_SOURCES", (tmp_path,))
    before = proofs._code()

    for path in ("suites/suite.py", "a/__pycache__/a.pyc"):
        (tmp_path / path).write_text("2")
    same = proofs._code()
    (tmp_path / name).write_text("2")

    assert same == before
    assert proofs._code() != before


def test_the_code_that_proves_is_the_grader_and_the_authors_tools():
    assert [path.name for path in proofs._SOURCES] == ["grader", "authoring", "course"]


@pytest.mark.parametrize("change", ["solution", "suite", "removed", "grader"])
def test_what_changed_during_a_proof_is_not_kept(made, cache, monkeypatch, change):
    fact = Fact("it holds", made.material, KINDS)

    def prove():
        if change == "grader":
            monkeypatch.setattr(proofs, "_code", lambda: "another")
        elif change == "removed":
            made.file("solutions/kernel.py").unlink()
        else:
            path = made.file("solutions/kernel.py" if change == "solution" else "suites/suite.py")
            path.write_text(path.read_text() + "\n")
        return ()

    assert proofs.faults(fact, prove) == ((), False)
    assert not cache.exists()


@pytest.mark.parametrize("entry", [
    "", "it holds", [], {}, True, {"proved": "it holds"}, {"proved": "it holds", "evidence": None},
    {"proved": "another", "evidence": ""}, {"proved": "it holds", "evidence": "", "more": 1}],
    ids=repr)
def test_an_entry_without_the_form_of_a_proof_is_none(made, entry):
    fact = Fact("it holds", made.material, KINDS)

    Cache("proofs").write(fact.key, entry)

    assert proofs.recall(fact) is None
    proofs.keep(fact)
    assert proofs.recall(fact) == ""


def test_a_damaged_entry_is_none(made, cache):
    fact = Fact("it holds", made.material, KINDS)
    proofs.keep(fact)

    (cache / fact.key).write_text((cache / fact.key).read_text().replace("holds", "fails"))

    assert proofs.recall(fact) is None


def test_a_kill_without_the_case_that_killed_is_none(made, monkeypatch):
    monkeypatch.setattr(proofs, "recall", lambda fact: "")
    monkeypatch.setattr(mutants, "kill", lambda material, mutant, box: ("", ["it lives: PASSED"]))

    lives = runner.kill(made.material, "a", None)

    assert (lives.passed, lives.cached) == (False, False)


def test_a_mutant_that_lives_is_run_each_time(made, cache, monkeypatch):
    material, runs = made.material, []
    monkeypatch.setattr(mutants, "kill", lambda *_: runs.append("first") or ("a case", ["fault"]))
    monkeypatch.setattr(mutants, "kill_again", lambda *_: runs.append("again") or [[], ["fault"]])
    task = runner.Task("track1/doubling", "mutant", "a", run=2, runs=2, killer="a case")

    results = [result for _ in range(2) for result in (
        runner.kill(material, "a", None), runner._mutant(task, material, None))]

    assert [(result.kills, result.cached) for result in results] == [(0, False), (1, False)] * 2
    assert runs == ["first", "again"] * 2
    assert not cache.exists()


def test_a_mutant_counts_as_proved_before_where_all_its_runs_were(made):
    unrun = runner.MutantResult("a", "a title", ("M01",))
    first, others = (replace(unrun, kills=kills, runs=kills) for kills in (1, 4))
    totals = []

    for cached in ((True, True), (True, False), (False, True)):
        proof = runner.Proof("m", "M", mutants=[unrun])
        for result, one in zip((first, others), cached, strict=True):
            task = runner.Task("m", "mutant", "a", run=1)
            runner._enter(proof, runner.TaskResult(task, mutants=(replace(result, cached=one),)))
        totals.append(runner.CourseProof((proof,)).cached["mutants"])

    assert totals == [1, 0, 0]


def test_digests_are_of_the_files_as_they_were_read(made):
    material = made.material

    made.edit("solutions/kernel.py", "block_size = 1024", "block_size = 2048")

    assert material.digests != module_files.digests(made.module)
    assert made.material.digests == module_files.digests(made.module)


@pytest.mark.course
def test_a_second_check_takes_everything_from_the_cache_unless_told_otherwise(run, made, cache):
    def check(*options: str) -> dict:
        words = ("check", "--json", "--runs", "2", "--course", str(made.root))
        return json.loads(run(*words, *options).out)

    def entries() -> dict:
        return {path.name: path.stat().st_mtime_ns for path in cache.iterdir()}

    first = check()
    kept = entries()
    anew = check("--no-cache")
    kept_after_anew = entries()
    again = check()

    assert [data["passed"] for data in (first, anew, again)] == [True] * 3
    assert [data["cached"] for data in (first, anew, again)] == [
        {"checks": 0, "mutants": 0}, {"checks": 0, "mutants": 0}, {"checks": 5, "mutants": 3}]
    assert (len(kept), kept_after_anew) == (11, kept)
    [before], [after] = (data["modules"] for data in (first, again))
    assert [(m["id"], m["case"], m["kills"], m["drawn"]) for m in after["mutants"]] == [
        (m["id"], m["case"], m["kills"], m["drawn"]) for m in before["mutants"]]
