"""Memory files of inputs: several processes read them, none can change them."""

from __future__ import annotations

import mmap
import os

import pytest
import torch

from grader.recording import arena


def test_packed_inputs_can_be_changed_in_a_private_copy_alone():
    x = torch.arange(8, dtype=torch.float32)

    with arena.pack([x]) as packed:
        [copy] = arena.unpack(packed.fd, packed.layout())
        copy.fill_(7)
        with pytest.raises(PermissionError):
            os.pwrite(packed.fd, b"7", 0)
        with pytest.raises(PermissionError):
            mmap.mmap(packed.fd, 32, flags=mmap.MAP_SHARED)
        [again] = arena.unpack(packed.fd, packed.layout())

    assert torch.equal(arena.as_tensor(again, packed.views[0]), x)
