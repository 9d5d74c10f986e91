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


@pytest.mark.parametrize("holes", [arena.WITH_HOLES, 0], ids=["whole", "with holes"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"))])
def test_tensors_of_any_device_and_strides_are_packed(monkeypatch, device, holes):
    monkeypatch.setattr(arena, "WITH_HOLES", holes)
    monkeypatch.setattr(arena, "STAGE", 100)
    x = torch.randn(6, 8, device=device)
    tensors = [x, x.T, x[1:, ::2], torch.randn(7, device=device)[3:], torch.ones((), device=device)]

    with arena.pack(tensors) as packed:
        storages = arena.unpack(packed.fd, packed.layout())

    assert len(storages) == 3
    for tensor, view in zip(tensors, packed.views, strict=True):
        copy = arena.as_tensor(storages[view.storage], view)
        assert copy.stride() == tensor.stride()
        assert torch.equal(copy, tensor.cpu())
