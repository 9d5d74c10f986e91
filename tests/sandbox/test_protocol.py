"""Requests as a child receives them, and folders that untrusted code wrote to."""

from __future__ import annotations

import os
import socket

import numpy as np
import pytest

from grader.sandbox import protocol, tempdirs
from grader.sandbox.errors import MalformedReply


def test_a_request_comes_whole_and_with_its_descriptors():
    ours, theirs = socket.socketpair()
    request = {"op": "call", "text": "x" * 100_000}
    with ours, theirs:
        message = protocol.encode(request)
        sent = socket.send_fds(ours, [message], [ours.fileno()])
        assert sent == len(message)

        received, descriptors = protocol.receive(theirs)

        assert received == request
        assert os.fstat(descriptors[0]).st_ino == os.fstat(ours.fileno()).st_ino
        os.close(descriptors[0])


@pytest.mark.parametrize("message", [
    {"large": 1 << 200, "small": -(1 << 64), "text": "é\n", "list": [1.5, -0.0, None, True]},
    {"half of a character": "\ud800"},  # as a learner's file may print it
    {"by number": {"1": 2}},
], ids=["numbers and texts", "a surrogate", "names"])
def test_a_reply_is_read_as_it_was_sent(message):
    assert protocol.decode(protocol.encode(message)[protocol.HEADER:]) == message


def test_numbers_of_numpy_and_names_that_are_integers_are_sent_as_json_has_them():
    message = {"seconds": np.float64(1.5), "lines": {3: 4}, "pair": (1, 2)}

    assert protocol.decode(protocol.encode(message)[protocol.HEADER:]) == {
        "seconds": 1.5, "lines": {"3": 4}, "pair": [1, 2]}


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"text"', b"NaN", b'{"a": Infinity}',
                                  b"[" * 100_000, b"\xff\xfe", b'{"a": 1}{}'])
def test_what_is_no_json_object_is_refused(body):
    with pytest.raises(MalformedReply):
        protocol.decode(body)


@pytest.mark.parametrize("part", [b"", b"\0\0", protocol.encode({"op": "call"})[:-1]],
                         ids=["nothing", "half a length", "half a request"])
def test_a_judge_that_is_gone_ends_the_child(part):
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(part)

        assert protocol.receive(theirs) is None


def test_a_folder_is_removed_though_its_rights_are_taken_away(tmp_path):
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    (folder / "deep" / "er").mkdir(parents=True)
    elsewhere.mkdir()
    (folder / "link").symlink_to(elsewhere)
    (folder / "deep" / "er" / "file").write_text("")
    (folder / "deep" / "er").chmod(0)
    (folder / "deep").chmod(0)

    tempdirs.remove(folder)

    assert (folder.exists(), elsewhere.exists()) == (False, True)
