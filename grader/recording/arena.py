"""Tensors in a memory file, packed once by the judge and mapped by worker and executor."""

import fcntl
import mmap
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from grader.recording.model import MalformedRecording, View, dtype_name

STAGE = 64 << 20  # bytes of page-locked memory through which tensors of a GPU are copied
WITH_HOLES = 1 << 28  # bytes of a storage of which only the elements of its tensors are kept
_RESULT_ALIGNMENT = 64  # bytes, of each result in its file
# F_SEAL_SEAL and its siblings, from <linux/fcntl.h>
SEAL, SHRINK, GROW, WRITE, FUTURE_WRITE = 0x0001, 0x0002, 0x0004, 0x0008, 0x0010
NORESERVE = 0x4000  # MAP_NORESERVE, which the mmap module names only from Python 3.13 on


@dataclass(frozen=True)
class Arena(AbstractContextManager["Arena"]):
    """One memory file. ``storages`` holds (offset, size) in bytes of each storage in it."""

    fd: int
    storages: tuple[tuple[int, int], ...]
    views: tuple[View, ...]

    @property
    def nbytes(self) -> int:
        return sum(_padded(size) for _, size in self.storages)

    def layout(self) -> list[list[int]]:
        return [list(place) for place in self.storages]

    def close(self) -> None:
        os.close(self.fd)

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class SparseTensor:
    """A tensor of any size that stores values at its windows only; the rest is zero.

    ``like`` is a tensor on torch's meta device with its shape, strides and dtype.
    """

    like: torch.Tensor
    windows: tuple[tuple[int, torch.Tensor], ...] = ()  # (first element of the storage, values)

    @property
    def nbytes(self) -> int:
        """Bytes of the storage."""
        return self.like.untyped_storage().nbytes()

    @property
    def elements(self) -> int:
        return self.like.numel()

    def part(self, window: int, start: int, count: int) -> torch.Tensor:
        """``count`` elements from ``start`` on, which lie in the given window."""
        first, values = self.windows[window]
        return values[start - first:start - first + count]


def pack(tensors: Sequence[torch.Tensor | SparseTensor]) -> Arena:
    """Copies the storages of tensors into a memory file that is sealed against changes.

    Tensors that share a storage share it in the arena too.
    """
    fd = os.memfd_create("tritonlab-inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    places: list[tuple[int, int]] = []
    numbers: dict[int, int] = {}
    views: list[View] = []

    def add(size: int) -> int:
        """Adds a storage; its first byte in the file."""
        start = os.fstat(fd).st_size
        os.ftruncate(fd, start + _padded(size))
        places.append((start, size))
        return start

    for tensor in tensors:
        if isinstance(tensor, SparseTensor):
            views.append(view_of(tensor.like, len(places)))
            start = add(tensor.nbytes)
            for first, window in tensor.windows:
                _write(fd, window, start + first * window.element_size())
            continue
        storage = tensor.untyped_storage()
        if (key := storage._cdata) not in numbers:
            numbers[key] = len(places)
            start = add(storage.nbytes())
            if storage.nbytes() <= WITH_HOLES:
                _write(fd, _whole(tensor, torch.uint8), start)
        if storage.nbytes() > WITH_HOLES:
            _write_elements(fd, places[numbers[key]][0], tensor)
        views.append(view_of(tensor, numbers[key]))
    seal(fd, SEAL | SHRINK | GROW | FUTURE_WRITE)
    return Arena(fd, tuple(places), tuple(views))


def unpack(fd: int, layout: Sequence[Sequence[int]]) -> list[torch.Tensor]:
    """Maps the storages of an arena as private uint8 tensors."""
    return [private_bytes(fd, offset, size) if size else torch.empty(0, dtype=torch.uint8)
            for offset, size in layout]


def private_bytes(fd: int, offset: int, nbytes: int) -> torch.Tensor:
    """Maps some bytes of a file, copy-on-write: what this process writes stays in it."""
    page = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
    mapped = mmap.mmap(fd, offset - page + nbytes, flags=mmap.MAP_PRIVATE | NORESERVE,
                       prot=mmap.PROT_READ | mmap.PROT_WRITE, offset=page)
    return torch.frombuffer(mapped, dtype=torch.uint8, offset=offset - page)


def seal(fd: int, seals: int) -> None:
    """Forbids some changes of a memory file to everybody.

    Raises:
        OSError: it is mapped by a writer, or sealed against further seals.
    """
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)  # type: ignore[attr-defined, unused-ignore]


def append_results(fd: int, tensors: Iterable[torch.Tensor]) -> list[list[Any]]:
    """Appends tensors to a file of results; [dtype, shape, offset, bytes] of each."""
    places: list[list[Any]] = []
    for tensor in tensors:
        start = -(-os.fstat(fd).st_size // _RESULT_ALIGNMENT) * _RESULT_ALIGNMENT
        os.ftruncate(fd, start + tensor.nbytes)
        _write(fd, tensor, start)
        places.append([dtype_name(tensor), list(tensor.shape), start, tensor.nbytes])
    return places


def as_tensor(storage: torch.Tensor, view: View) -> torch.Tensor:
    """The strided tensor that ``view`` describes, over the storage of a tensor of any dtype."""
    dtype = getattr(torch, view.dtype)
    typed = torch.empty(0, dtype=dtype)
    return typed.set_(storage.untyped_storage(), view.offset, view.shape, view.stride)  # type: ignore[call-overload, no-any-return, unused-ignore]


def itemsize(view: View) -> int:
    dtype = getattr(torch, view.dtype, None) if view.dtype.isidentifier() else None
    if not isinstance(dtype, torch.dtype):
        raise MalformedRecording(f"there is no dtype {view.dtype!r:.40}")
    return dtype.itemsize


def extent(view: View) -> int:
    """Number of elements from the view's first to its last, inclusive."""
    if 0 in view.shape:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(view.shape, view.stride, strict=True))


def view_of(tensor: torch.Tensor, storage: int) -> View:
    """Describes where a tensor lies in its storage.

    A view of no elements may begin beyond the storage: column 1 of a matrix without rows does.
    """
    offset = int(tensor.storage_offset())
    if not tensor.numel():
        offset = min(offset, tensor.untyped_storage().nbytes() // tensor.itemsize)
    return View(
        storage, dtype_name(tensor), tuple(tensor.shape), tuple(tensor.stride()), offset,
    )


def _write_elements(fd: int, start: int, tensor: torch.Tensor) -> None:
    """Writes the elements of a tensor, row by row, to its storage in the file."""
    size = tensor.element_size()
    if tensor.is_contiguous():
        _write(fd, tensor, start + int(tensor.storage_offset()) * size)
        return
    if tensor.is_cuda:  # one copy instead of one for each row
        tensor = _whole(tensor, tensor.dtype).cpu().as_strided(
            tensor.shape, tensor.stride(), tensor.storage_offset())
    for index in product(*map(range, tensor.shape[:-1])):
        row = tensor[index]
        pieces = [row] if row.is_contiguous() else row.view(-1, 1)
        for piece in pieces:
            _write(fd, piece, start + int(piece.storage_offset()) * size)


def _whole(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The storage of a tensor."""
    return torch.empty(0, dtype=dtype, device=tensor.device).set_(tensor.untyped_storage())


def _write(fd: int, tensor: torch.Tensor, offset: int) -> None:
    """Writes the elements of a tensor in their order.

    Those of a GPU come by way of page-locked memory: a copy to fresh pages takes longer than the
    file.
    """
    whole = tensor.contiguous()  # of a single element the stride may still be any
    data = whole.as_strided((whole.numel(),), (1,)).view(torch.uint8)
    if not data.is_cuda:
        _write_bytes(fd, data.numpy().data, offset)
        return
    stage = torch.empty(min(STAGE, len(data)), dtype=torch.uint8, pin_memory=True)
    for first in range(0, len(data), STAGE):
        part = data[first:first + STAGE]
        _write_bytes(fd, stage[:len(part)].copy_(part).numpy().data, offset + first)


def _write_bytes(fd: int, data: memoryview, offset: int) -> None:
    while data:  # one call writes 2 GiB at most
        written = os.pwrite(fd, data[:1 << 30], offset)
        data, offset = data[written:], offset + written


def _padded(size: int) -> int:
    """Rounds a size up to whole pages, on which mappings start."""
    page = mmap.PAGESIZE
    return (size + page - 1) // page * page
