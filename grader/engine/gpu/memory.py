"""Memory of a GPU that shows a kernel's mistakes: red zones, poison, copies of inputs."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import torch

from grader.engine.interpreter.poison import FRESH_BYTE
from grader.recording.arena import extent, itemsize, private_bytes
from grader.recording.model import MalformedRecording, View

ZONE = 64 << 10  # bytes before and behind every storage; a multiple of CUDA's alignment
_MOST = 1 << 40  # bytes of a storage
_CHUNK = 256 << 20  # bytes that are mapped at a time


@dataclass(frozen=True)
class Overrun:
    """A red zone that was written to."""

    storage: int
    behind: bool  # after the storage, else before it
    nearest: int  # bytes from the storage to the first that changed; 0 is adjacent
    farthest: int
    count: int


class _Buffer:
    """One storage with its two zones, as bytes."""

    def __init__(self, nbytes: int, device: torch.device) -> None:
        if nbytes > _MOST:
            raise MemoryError(f"an allocation of {nbytes / 1e9:.1f} GB")
        self.nbytes = nbytes
        self.whole = torch.empty(ZONE + nbytes + ZONE, dtype=torch.uint8, device=device)
        self.body = self.whole[ZONE:ZONE + nbytes]
        self.zones = (self.whole[:ZONE], self.whole[ZONE + nbytes:])
        self.kept: torch.Tensor | None = None  # of an input: a copy of its bytes
        self.changing: list[View] = []  # of an input: views that may be changed in place

    def restore(self) -> None:
        """Gives an input that may be changed its bytes again."""
        if self.kept is not None and self.changing:
            self.body.copy_(self.kept)


class GpuMemory:
    """All storages of one replay, by number; ``poison`` selects the pattern of fresh memory."""

    def __init__(self, device: torch.device, poison: int) -> None:
        self.device = device
        self._poison, self._byte = poison, FRESH_BYTE[poison]
        self._buffers: dict[int, _Buffer] = {}

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers.values())

    def load(self, number: int, fd: int, place: Sequence[int]) -> None:
        """Copies an input from its file; holes of the file are zero and not read."""
        offset, size = place
        buffer = self._add(number, size)
        buffer.body.zero_()
        for start, stop in _filled(fd, offset, size):
            for first in range(start, stop, _CHUNK):
                count = min(_CHUNK, stop - first)
                buffer.body[first - offset:first - offset + count].copy_(
                    private_bytes(fd, first, count))
        buffer.kept = buffer.body.clone()

    def copy(self) -> Self:
        """Returns a memory with the same inputs at other addresses, and nothing else."""
        other = type(self)(self.device, self._poison)
        for number, buffer in self._buffers.items():
            if buffer.kept is not None:
                mine = other._add(number, buffer.nbytes)
                mine.body.copy_(buffer.kept)
                mine.kept = buffer.kept
        return other

    def forget(self) -> None:
        """Frees all storages but the inputs, which get their bytes again."""
        self._buffers = {number: buffer for number, buffer in self._buffers.items()
                         if buffer.kept is not None}
        for buffer in self._buffers.values():
            buffer.restore()
            buffer.changing = []

    def change(self, views: Sequence[View]) -> None:
        """Lets these views of inputs, and nothing beside them, be changed in place from now on."""
        for view in views:
            self.check(view).changing.append(view)

    def allocate(self, number: int, nbytes: int) -> None:
        """Adds a storage, full of poison."""
        if number in self._buffers:
            raise MalformedRecording(f"storage {number} is allocated twice")
        self._add(number, nbytes).body.fill_(self._byte)

    def _add(self, number: int, nbytes: int) -> _Buffer:
        buffer = self._buffers[number] = _Buffer(nbytes, self.device)
        for zone in buffer.zones:
            zone.fill_(self._byte)
        return buffer

    def check(self, view: View) -> _Buffer:
        """Returns the storage of a view.

        Raises:
            MalformedRecording: there is none, or the view reaches beyond it.
        """
        buffer = self._buffers.get(view.storage)
        if buffer is None:
            raise MalformedRecording(f"storage {view.storage} does not exist at this point")
        if (view.offset + extent(view)) * itemsize(view) > buffer.nbytes:
            raise MalformedRecording(f"a view reaches beyond storage {view.storage}")
        return buffer

    def tensor(self, view: View) -> torch.Tensor:
        """Returns the strided tensor of a view, which shares this memory."""
        buffer = self.check(view)
        return _strided(buffer.whole, view, ZONE // itemsize(view) + view.offset)

    def spoil(self) -> None:
        """Poisons all storages but inputs, so that no result of an earlier run remains.

        Inputs that are changed in place get their bytes again.
        """
        for buffer in self._buffers.values():
            if buffer.kept is None:
                buffer.body.fill_(self._byte)
            else:
                buffer.restore()

    def overruns(self) -> list[Overrun]:
        """Returns every red zone that was written to, and mends it, so that it is reported once."""
        zones = [(number, behind, zone) for number, buffer in self._buffers.items()
                 for behind, zone in enumerate(buffer.zones)]
        if not zones:
            return []
        hit = torch.stack([(zone != self._byte).any() for *_, zone in zones]).tolist()
        overruns = []
        for (number, behind, zone), changed in zip(zones, hit, strict=True):
            if changed:
                places = (zone != self._byte).nonzero().view(-1)
                first, last, count = int(places[0]), int(places[-1]), len(places)
                near, far = (first, last) if behind else (ZONE - 1 - last, ZONE - 1 - first)
                overruns.append(Overrun(number, bool(behind), near, far, count))
                zone.fill_(self._byte)
        return overruns

    def changed_inputs(self) -> list[int]:
        """Returns the storages of inputs that hold other bytes where they may not be changed."""
        return [number for number, buffer in self._buffers.items()
                if buffer.kept is not None and not same(buffer.body, self._allowed(buffer))]

    def _allowed(self, buffer: _Buffer) -> torch.Tensor:
        """The bytes that an input may hold now: its own, and any where it may be changed."""
        assert buffer.kept is not None
        if not buffer.changing:
            return buffer.kept
        allowed = buffer.kept.clone()
        for view in buffer.changing:
            _strided(allowed, view, view.offset).copy_(self.tensor(view))
        return allowed


def _strided(storage: torch.Tensor, view: View, offset: int) -> torch.Tensor:
    """A view's tensor in the storage of another one, from the element ``offset`` on."""
    typed = torch.empty(0, dtype=getattr(torch, view.dtype), device=storage.device)
    return typed.set_(storage.untyped_storage(), offset, view.shape, view.stride)  # type: ignore[call-overload, no-any-return, unused-ignore]


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor as integers, as wide as possible, so that NaN equals itself."""
    flat = tensor.contiguous().view(-1).view(torch.uint8)
    for wide in (torch.int64, torch.int32, torch.int16):
        if flat.numel() % wide.itemsize == 0 and flat.data_ptr() % wide.itemsize == 0 and (
                flat.storage_offset() % wide.itemsize == 0):
            return flat.view(wide)
    return flat


def same(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same bytes."""
    return not bool(differs(first, second))


def differs(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Whether their bytes differ, as a tensor, so that the caller need not synchronize."""
    one, other = bits(first), bits(second)
    if one.dtype != other.dtype:
        one, other = (tensor.contiguous().view(-1).view(torch.uint8) for tensor in (first, second))
    return (one != other).any()


def _filled(fd: int, offset: int, size: int) -> Iterator[tuple[int, int]]:
    """The ranges of bytes of a part of a file that are not holes."""
    place, end = offset, offset + size
    while place < end:
        try:
            start = os.lseek(fd, place, os.SEEK_DATA)
        except OSError:  # nothing but a hole up to the end of the file
            return
        if start >= end:
            return
        place = min(end, os.lseek(fd, start, os.SEEK_HOLE))
        yield start, place
