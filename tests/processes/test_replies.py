"""What the judge makes of replies that the learner's code may have forged."""

from __future__ import annotations

import copy
import fcntl
import mmap
import os
from typing import Any

import pytest
import torch

from grader.processes import replies
from grader.processes.replies import (
    MAX_MESSAGE,
    WORKER_CODES,
    MemoryFile,
    Outcome,
    Stopped,
    outcome_of,
    refusal_of,
    run_of,
    unusable,
)
from grader.processes.session import Session
from grader.recording.arena import append_results
from grader.recording.model import (
    DTYPES,
    Alloc,
    Argument,
    Launch,
    MalformedRecording,
    Recording,
    View,
    to_json,
    view_from_json,
)
from grader.submission.source import read

X = View(0, "float32", (16,), (1,), 0)
OUT = View(1, "float32", (16,), (1,), 0)
LAUNCH = Launch("copy_kernel", (1, 1, 1),
                {"x_ptr": Argument("tensor", X), "n": Argument("int", 16)},
                {"num_warps": 4}, 7)
RETURNED = {"status": "returned", "findings": [], "configurations": 2,
            "recording": to_json(Recording((X,), (Alloc(1, 64), LAUNCH), (OUT,)))}
RAISED = {"status": "raised", "types": ["ValueError", "Exception"], "message": "x", "line": 3,
          "launches": 0, "findings": [{"code": "X01", "data": "It reads.", "line": 3}]}

SUBMISSION = '''\
import sys
import torch
import triton

@triton.jit
def kernel(x_ptr):
    pass

protocol = sys.modules["grader.sandbox.protocol"]
encode = protocol.encode

def forged(reply):
    return encode({CHANGED} if reply["status"] == "returned" else reply)

protocol.encode = forged

def f(x):
    return RESULT
'''


def outcome(reply: dict[str, Any], **changes: Any) -> Outcome:
    return outcome_of({**reply, **changes}, (X,), "f")


def changed(*path: Any, value: Any) -> dict[str, Any]:
    """``RETURNED`` with another value at one place of its recording."""
    reply = copy.deepcopy(RETURNED)
    inner: Any = reply["recording"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return reply


def test_what_the_worker_really_answers_is_read_whole():
    assert outcome(RETURNED).recording == Recording((X,), (Alloc(1, 64), LAUNCH), (OUT,))
    assert outcome(RETURNED).configurations == 2
    raised = outcome(RAISED)
    assert raised.error and raised.error.types == ("ValueError", "Exception")
    assert [(f.code, f.seen, f.line) for f in raised.findings] == [("X01", "It reads.", 3)]
    assert outcome({"status": "value", "type": "list", "findings": []}).value == "list"


@pytest.mark.parametrize("changes", [
    {"status": "broken", "traceback": "boo"}, {"status": None}, {"status": ["raised"]},
    {"types": []}, {"types": "ValueError"}, {"types": [1]}, {"types": ["x" * 300]},
    {"types": ["x"] * 100}, {"types": None}, {"message": None}, {"message": ["x"]},
    {"line": "abc"}, {"line": -1}, {"line": 10**12}, {"line": True}, {"line": 1.5},
    {"launches": -1}, {"launches": "2"}, {"launches": True}, {"launches": 1 << 60},
    {"findings": 5}, {"findings": {}}, {"findings": ["x"]}, {"findings": [{}]},
    {"findings": [{"code": "ZZ9", "data": "x"}]}, {"findings": [{"code": ["X01"], "data": "x"}]},
    {"findings": [{"code": "N01", "data": "x"}]}, {"findings": [{"code": "X01", "data": 5}]},
    {"findings": [{"code": "X01", "data": "x", "line": "3"}]},
    {"findings": [{"code": "X01", "data": "x"}] * 17},
    {"findings": [{"code": "X01", "data": {"family": "Fault", "kind": "nothing"}}]},
    {"findings": [{"code": "X01", "data": {"family": "Fault", "kind": "host work"}}]},
    {"findings": [{"code": "X01", "data": {"family": "Fault", "kind": "host reads", "figures": {
        "code": "x", "count": "many", "most": 4}}}]},
    {"findings": [{"code": "X01", "data": {
        "family": "Fault", "kind": "blanks in files",
        "figures": {"count": 1, "total": 1, "files": [1], "lines": [1]}}}]},
    {"findings": [{"code": "X01", "data": {"family": "Fault", "kind": "raised", "figures": {
        "exception": ["E"] * 300}}}]},
    {"findings": [{"code": "X01", "data": {"family": "Fault", "kind": "in place", "figures": {
        "names": ["x" * 2000] * 200, "got": "other"}}}]},
], ids=repr)
def test_a_reply_of_another_form_is_no_reply(changes):
    with pytest.raises(Stopped, match="sent an invalid reply after ") as stopped:
        outcome(RAISED, **changes)

    assert stopped.value.finding.code == "R03"
    assert len(stopped.value.finding.seen) < 300


@pytest.mark.parametrize("reply", [
    {"status": "returned"},
    {"status": "value", "type": 3, "findings": []},
    {**RETURNED, "configurations": 10**9},
    {**RETURNED, "configurations": 0},
    {**RETURNED, "findings": "none"},
    changed("results", 0, 1, value="float"),
    changed("results", 0, 1, value="Tensor"),
    changed("results", 0, 1, value="load"),
    changed("results", 0, 1, value=["float32"]),
    changed("results", 0, value=[1, "float32", [0, 2**61, 2**61], [1, 1, 1], 0]),
    changed("results", 0, value=[1, "float32", [2**39, 2**39], [0, 0], 0]),
    changed("results", 0, value=[1, "float32", [2], [2**61], 0]),
    changed("results", 0, value=[1, "float32", [2], [1], 2**61]),
    changed("results", value=[[1, "float32", [16], [1], 0]] * 5000),
    changed("events", 1, 4, value={"num_warps": 10**18}),
    changed("events", 1, 4, value={"x" * 5000: 1}),
    changed("events", 1, 4, value={"ir_override": "x" * 65}),
    changed("events", 1, 4, value={"ir_override": "\ud800"}),
    changed("events", 1, 4, value={f"option{n}": 1 for n in range(17)}),
    changed("events", 1, 4, value={"num_warps": 1.5}),
    changed("events", 1, 1, value="\udcff"),
    changed("events", 1, 2, value=[2**31, 1, 1]),
    changed("events", 1, 5, value=10**12),
    changed("events", 1, 3, value={"n": ["int", 10**4000]}),
    changed("events", 1, 3, value={"n": ["int", 2**64]}),
    changed("events", 1, 3, value={"n": ["int", -2**63 - 1]}),
    changed("inputs", 0, value=[0, "float32", [8], [1], 8]),
    changed("inputs", 0, value=[0, "int32", [16], [1], 0]),
])
def test_a_recording_of_what_cannot_be_is_no_reply(reply):
    with pytest.raises(Stopped) as stopped:
        outcome(reply)

    assert stopped.value.finding.code == "R03"


@pytest.mark.parametrize(("result", "codes"), [
    (OUT, []), (X, ["S01"]), (View(0, "float32", (4,), (2,), 1), ["S01"])],
    ids=["new", "the input", "a part of the input"])
def test_a_result_does_not_lie_in_the_memory_of_an_input(result, codes):
    recording = Recording((X,), (Alloc(1, 64), LAUNCH), (result,))

    assert [finding.code for finding in unusable(Outcome(recording))] == codes


def test_texts_are_cut_and_can_be_written_to_a_file():
    long = outcome(RAISED, message="\ud800" + "x" * 9000,
                   findings=[{"code": code, "data": "y" * 9000} for code in WORKER_CODES])

    assert long.error
    assert len(long.error.message.encode()) < MAX_MESSAGE + 10
    assert all(len(finding.seen) == MAX_MESSAGE for finding in long.findings)


def test_a_line_that_python_does_not_know_is_none():
    error = outcome(RAISED, line=0).error

    assert error and error.line is None


@pytest.mark.parametrize("reply", [
    {"status": "returned"}, {}, {"status": "raised"}, {**RAISED, "types": []},
    {**RAISED, "line": "3"}, {**RAISED, "message": 3}])
def test_a_reply_to_load_of_another_form_is_no_reply(reply):
    with pytest.raises(Stopped, match="invalid reply after importing the file") as stopped:
        refusal_of(reply)

    assert stopped.value.finding.code == "R03"
    assert stopped.value.final


@pytest.mark.parametrize(("reply", "code", "says"), [
    (RAISED, "P02", "Importing the file raised ValueError: x."),
    ({**RAISED, "types": ["SyntaxError"], "message": "'return' outside function (kernel.py, line 3)"
      }, "P02", "Python cannot compile line 3: 'return' outside function."),
    ({**RAISED, "types": ["MemoryError"], "message": ""}, "R04",
     "Importing the file raised MemoryError. A submission may use 2.1 GB of memory in addition to "
     "the inputs of its module."),
    ({**RAISED, "types": ["SyntaxError"]}, "P02", "Importing the file raised SyntaxError: x."),
])
def test_why_a_file_cannot_be_used_is_said(reply, code, says):
    finding = refusal_of(reply)

    assert finding and (finding.code, finding.seen) == (code, says)
    assert refusal_of({"status": "ready"}) is None


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_every_dtype_that_crosses_can_be_read(dtype):
    results, made = MemoryFile("results"), torch.arange(12).to(getattr(torch, dtype))
    os.pwrite(results.fd, bytes(made.view(torch.uint8).tolist()), 64)

    found = results.read([dtype, [3, 4], 64, 12 * made.itemsize])

    assert found.shape == (3, 4)
    assert torch.equal(found.view(-1).view(torch.uint8), made.view(torch.uint8))
    assert view_from_json([0, dtype, [3], [1], 0]).dtype == dtype


@pytest.mark.parametrize("writer", ["has closed it", "has mapped it", "has sealed it"])
def test_a_large_result_is_mapped_unless_its_writer_could_still_change_it(monkeypatch, writer):
    monkeypatch.setattr(replies, "MAPPED", 8192)
    results, tensor = MemoryFile("results"), torch.randn(50, 60)
    [place] = append_results(results.fd, [torch.zeros(3), tensor])[1:]
    mapped = mmap.mmap(results.fd, 0) if writer == "has mapped it" else None
    if writer == "has sealed it":
        fcntl.fcntl(results.fd, fcntl.F_ADD_SEALS, 1)  # against further seals

    result = results.read(place)

    try:
        os.pwrite(results.fd, bytes(64), place[2])
        is_mapped = False
    except PermissionError:  # it is sealed
        is_mapped = True
        with pytest.raises(PermissionError):
            os.ftruncate(results.fd, 0)
    assert is_mapped is (writer == "has closed it")
    assert torch.equal(result, tensor)
    result += 1  # is the reader's own
    assert torch.equal(results.read(place), tensor) is is_mapped
    del mapped


@pytest.mark.parametrize("place", [
    ["quint8", [16], 0, 16], ["bits8", [16], 0, 16], ["Tensor", [16], 0, 16],
    ["float32", [16], 0, 16], ["float32", [16], 8, 64], ["float32", [-4], 0, 16],
    ["float32", [0, 2**61, 2**61], 0, 0], ["float32", [2**50], 0, 2**52],
    ["float32", ["4"], 0, 16], ["float32", [4], -4, 16],
], ids=repr)
def test_a_result_that_cannot_be_read_is_not_read(place):
    results = MemoryFile("results")
    os.ftruncate(results.fd, 64)

    with pytest.raises(MalformedRecording):
        results.read(place)
    with pytest.raises(Stopped, match="invalid reply"):
        run_of({"status": "done", "results": [place], "findings": [], "launches": []}, results)


def test_the_reply_of_a_gpu_is_read_though_it_has_less():
    run = run_of({"status": "done", "results": [], "findings": [], "launches": []},
                 MemoryFile("results"))

    assert (run.results, run.other, run.printed, run.determined) == ((), (), (), False)


@pytest.mark.parametrize("dtype", ["quint8", "qint32", "bits8", "complex32", "uint4"])
def test_a_tensor_of_a_dtype_that_cannot_cross_is_a_wrong_result(dtype):
    (finding,) = unusable(outcome(changed("results", 0, 1, value=dtype)))

    assert finding.code == "S01"
    assert f"a tensor of {dtype}, a dtype" in finding.seen


def test_a_quantized_result_of_an_honest_function_is_a_wrong_result(sandbox, tmp_path):
    text = SUBMISSION.replace("{CHANGED}", "reply")
    text = text.replace("RESULT", "torch.empty(16, dtype=torch.quint8, device='cpu:0')")

    (finding,) = unusable(called(text, sandbox, tmp_path))

    assert (finding.code, finding.line) == ("S01", None)
    assert "quint8" in finding.seen


@pytest.mark.parametrize("forged", [
    "{'status': 'broken', 'traceback': 'boo'}", "{'status': 'raised', 'types': [], 'message': ''}",
    "{}", "{**reply, 'findings': 5}"])
def test_a_forged_reply_is_the_learners_failure_and_no_error_of_the_grader(
        sandbox, tmp_path, forged):
    text = SUBMISSION.replace("{CHANGED}", forged).replace("RESULT", "torch.empty_like(x)")

    with pytest.raises(Stopped, match="invalid reply") as stopped:
        called(text, sandbox, tmp_path)

    assert stopped.value.finding.code == "R03"
    honest = text.replace("protocol.encode = forged", "")
    assert called(honest, sandbox, tmp_path).recording is not None


def called(text: str, sandbox: Any, folder: Any) -> Outcome:
    path = folder / "kernel.py"
    path.write_text(text)
    with Session(read(path), "f", sandbox) as session:
        return session.record([torch.ones(8)])


def test_a_function_that_is_missing_is_named():
    [finding] = outcome({"status": "missing"}).findings

    assert (finding.code, finding.seen) == ("P04", "The file does not define a function `f`.")
