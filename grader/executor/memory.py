"""The memory of a replay: the inputs' storages, those that the recording allocates, host moves."""

import errno
import mmap
from collections.abc import Callable, Container, Sequence
from functools import partial
from itertools import chain
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from grader.engine.interpreter.address_space import Storage
from grader.engine.interpreter.launch import HostDescriptor, Pointer
from grader.engine.interpreter.numerics import TRITON
from grader.engine.interpreter.poison import FRESH_BYTE
from grader.engine.interpreter.shadow_memory import HOST, KERNEL, NOBODY
from grader.finding import Unstored, fault
from grader.recording import arena
from grader.recording.arena import NORESERVE, extent, itemsize
from grader.recording.model import (
    Alloc,
    Descriptor,
    Fill,
    MalformedRecording,
    Move,
    Recording,
    View,
    views_in,
)
from grader.report import Finding

_LAZY_BYTES = 1 << 30  # larger allocations are left untouched: their pages would not fit
SMALL = 1 << 26  # bytes of an allocation that has memory where large ones have none
_MAX_BYTES = 1 << 40
_TMA_ALIGNMENT = 16  # bytes, of a descriptor's base and strides


class Storages:
    """All storages of one replay by number."""

    def __init__(self, fd: int, layout: Sequence[Sequence[int]], recording: Recording,
                 pattern: int, virtual: Container[int] | None = None) -> None:
        """``virtual``: inputs that have a size and no memory, nor have large allocations then."""
        self._pattern = pattern
        self._fd, self._layout = fd, layout
        self._virtual = virtual
        self._granules = _granules(recording)
        self._by_number: dict[int, tuple[torch.Tensor, Storage]] = {}
        if not all(view.storage < len(layout) for view in recording.inputs):
            raise MalformedRecording("an input's storage is not in the arena")
        for number, place in enumerate(layout):
            data = (_sized(place[1]) if virtual is not None and number in virtual
                    else arena.unpack(fd, [place])[0])
            self._add(number, data, is_input=True, changing=number in recording.changing)
        for view in recording.inputs:
            self.check(view)

    def allocate(self, event: Alloc) -> None:
        """A new storage, full of poison.

        Raises:
            MemoryError: it is too large.
        """
        if event.storage in self._by_number:
            raise MalformedRecording(f"storage {event.storage} is allocated twice")
        if self._virtual is None:
            if event.nbytes > _MAX_BYTES:
                raise MemoryError(f"an allocation of {event.nbytes / 1e9:.1f} GB")
            data = _pages(event.nbytes) if event.nbytes > _LAZY_BYTES else torch.full(
                (event.nbytes,), FRESH_BYTE[self._pattern], dtype=torch.uint8)
        else:
            data = _pages(event.nbytes) if 0 < event.nbytes <= SMALL else _sized(event.nbytes)
        self._add(event.storage, data, is_input=False)

    def _add(self, number: int, data: torch.Tensor, *, is_input: bool,
             changing: bool = False) -> None:
        granule = self._granules.get(number, 1)
        protected = is_input and not changing
        self._by_number[number] = (data, Storage(data.numpy(), granule, is_input, protected))

    def check(self, view: View) -> Storage:
        """The storage of a view.

        Raises:
            MalformedRecording: the view reaches beyond its storage.
        """
        data, storage = self._of(view)
        if (view.offset + extent(view)) * itemsize(view) > data.numel():
            raise MalformedRecording(f"a view reaches beyond storage {view.storage}")
        if prod(view.shape) > _MAX_BYTES:
            raise MalformedRecording("a view of more elements than there can be")
        return storage

    def tensor(self, view: View) -> torch.Tensor:
        self.check(view)
        return arena.as_tensor(self._of(view)[0], view)

    def _of(self, view: View) -> tuple[torch.Tensor, Storage]:
        if view.storage not in self._by_number:
            raise MalformedRecording(f"storage {view.storage} does not exist at this point")
        return self._by_number[view.storage]

    # -- arguments of kernels ------------------------------------------------------------------

    def pointer(self, view: View) -> Pointer:
        storage = self.check(view)
        if view.dtype not in TRITON:
            raise MalformedRecording(f"Triton has no elements of dtype {view.dtype!r:.40}")
        size = itemsize(view)
        return Pointer(storage, view.dtype, view.offset * size, extent(view) * size)

    def descriptor(self, descriptor: Descriptor) -> HostDescriptor:
        """The base reaches as far as shape and strides say, whatever view it was made of."""
        self.check(descriptor.base)
        size = itemsize(descriptor.base)
        steps = (descriptor.base.offset, *descriptor.strides[:-1])
        if any(step * size % _TMA_ALIGNMENT for step in steps):
            raise MalformedRecording(f"a descriptor's base or stride is not a multiple of "
                                     f"{_TMA_ALIGNMENT} bytes")
        return HostDescriptor(self.pointer(descriptor.reach), descriptor)

    # -- host operations -----------------------------------------------------------------------

    def write(self, event: Fill | Move) -> None:
        """Does what host code did, without noting who wrote."""
        within_host(lambda: host_write(event, self.tensor)())

    def replay(self, event: Fill | Move) -> Finding | None:
        """Does what host code did; M07 where it changed an input.

        Raises:
            MemoryError: a tensor is too large.
        """
        target, storage = event.target, self.check(event.target)
        if isinstance(event, Move):
            origin = self.check(event.source)
            if storage.shadow.paged or (origin.shadow.paged and origin.shadow.touched):
                raise MemoryError("a host copy of a tensor this large")
            self.write(event)
            states = self._states(event.source)
            self._cells(target)[...] = within_host(
                lambda: np.broadcast_to(states[..., None], (*target.shape, 1)))
        elif storage.shadow.paged:
            whole = extent(target) * itemsize(target) == len(storage.data) and _dense(target)
            if not whole or event.value != 0:
                raise MemoryError("a host fill of a tensor this large")
            storage.shadow.fill(HOST)  # fresh pages are zero already
        else:
            self.write(event)
            self._cells(target)[...] = HOST
        if storage.protected and 0 not in target.shape:
            return Finding("M07", fault("modified by host"))
        return None

    def _cells(self, view: View) -> NDArray[np.int32]:
        """Shadow cells, writable, with one more axis for the granules of an element."""
        storage = self._of(view)[1]
        ratio = max(1, itemsize(view) // storage.granule)
        strides = tuple(step * ratio for step in view.stride)
        return storage.shadow.strided(view.offset * ratio, (*view.shape, ratio), (*strides, 1))

    def _states(self, view: View) -> NDArray[np.int32]:
        """NOBODY, HOST or KERNEL for each element: the least trusted of its granules."""
        shadow = self._of(view)[1].shadow
        if shadow.paged and not shadow.touched:  # one answer for all, and too many cells to ask
            return np.full(view.shape, shadow.default, np.int32)
        cells = self._cells(view)
        states = np.where((cells > 0) | (cells < KERNEL), KERNEL, cells)
        return np.where((states == NOBODY).any(-1), NOBODY, states.max(-1)).astype(np.int32)

    # -- after the last event --------------------------------------------------------------------

    def coverage(self, recording: Recording, names: Sequence[str] = (), *,
                 zeroed: bool = False) -> list[Finding]:
        """M03 for every result with elements that no kernel stored; ``names`` are theirs.

        What works in place may leave elements as they are. Where no input has an element there is
        nothing to compute, and a host fill is enough: the sum of no products is zero. Of a result
        that may start ``zeroed``, elements may stay the zeros of a host fill.
        """
        views, findings = () if recording.in_place else recording.results, []
        nothing_given = recording.inputs and not any(prod(v.shape) for v in recording.inputs)
        for number, view in enumerate(views):
            storage, total = self.check(view), prod(view.shape)
            if not total or storage.shadow.paged:
                continue
            states = self._states(view)
            missing = (states == NOBODY) if nothing_given else (states != KERNEL)
            if zeroed:
                missing &= (states != HOST) | (self.tensor(view) != 0).numpy()
            count = int(missing.sum())
            if count:
                first = [int(i) for i in np.unravel_index(int(missing.argmax()), view.shape)]
                behind = count < total and _is_end(missing, first)
                findings.append(Finding("M03", Unstored(
                    count, total, tuple(first), number if len(views) > 1 else None,
                    names[number] if number < len(names) else "", behind)))
        return findings

    def outside(self, recording: Recording) -> list[Finding]:
        """M07 for what was changed between the elements of inputs that are worked on in place.

        Nothing is said of storages too large for a note of each element.
        """
        findings = []
        for number in sorted(recording.changing):
            storage = self._by_number[number][1]
            size, count = storage.granule, len(storage.data) // storage.granule
            if storage.shadow.paged or not count:
                continue
            given = arena.unpack(self._fd, [self._layout[number]])[0].numpy()
            changed = (storage.data != given)[:count * size].reshape(count, size).any(axis=1)
            cells = storage.shadow.strided(0, (count,), (1,))
            changed |= (cells > 0) | (cells < KERNEL)
            views = [view for view in recording.results if view.storage == number]
            for view in views:
                if prod(view.shape):
                    ratio = itemsize(view) // size
                    np.lib.stride_tricks.as_strided(
                        changed[view.offset * ratio:], (*view.shape, ratio),
                        (*(step * ratio for step in view.stride), 1))[...] = False
            if changed.any():
                wide = itemsize(views[0])
                count = -(-int(changed.sum()) * size // wide)
                first = int(changed.argmax()) * size // wide - views[0].offset
                findings.append(Finding("M07", fault(
                    "modified beside", count=count, distance=abs(first),
                    side="before" if first < 0 else "after")))
        return findings

    def append_results(self, fd: int, views: Sequence[View]) -> list[list[Any]]:
        """Appends results to a file, as ``arena.append_results`` does.

        Raises:
            MemoryError: they are too large.
        """
        if any(prod(view.shape) * itemsize(view) > _LAZY_BYTES for view in views):
            raise MemoryError("a result this large")
        try:
            return arena.append_results(
                fd, (within_host(self.tensor(view).contiguous) for view in views))
        except OSError as error:  # a file may grow so far and no further
            if error.errno != errno.EFBIG:
                raise
            raise MemoryError("a result this large") from error


def host_write(event: Fill | Move, tensor: Callable[[View], torch.Tensor]) -> Callable[[], object]:
    """Returns a function that does what host code did, on the tensors that views stand for."""
    target = tensor(event.target)
    if isinstance(event, Fill):
        return partial(target.fill_, event.value)
    source = tensor(event.source)
    source = source.conj() if event.conjugate else source
    if event.target.storage == event.source.storage:
        return lambda: target.copy_(source.clone())
    return partial(target.copy_, source)


def windows_of(view: View, windows: Sequence[Sequence[int]]) -> list[View]:
    """Runs of (first element, count) of a contiguous view, each as a view of one dimension."""
    if not _dense(view):
        raise MemoryError("a result this large that is not contiguous")
    total = prod(view.shape)
    if not all(first >= 0 and count >= 0 and first + count <= total for first, count in windows):
        raise MalformedRecording("a window reaches beyond the result")
    return [
        View(view.storage, view.dtype, (count,), (1,), view.offset + first)
        for first, count in windows
    ]


def _pages(nbytes: int) -> torch.Tensor:
    """Zeros, of which only what is touched gets memory."""
    try:
        pages = mmap.mmap(-1, nbytes,
                          flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
    except OSError as error:
        raise MemoryError(f"an allocation of {nbytes / 1e9:.1f} GB") from error
    return torch.frombuffer(pages, dtype=torch.uint8)


def _sized(nbytes: int) -> torch.Tensor:
    """So many bytes that are one and the same."""
    if nbytes > _MAX_BYTES:
        raise MemoryError(f"an allocation of {nbytes / 1e9:.1f} GB")
    return torch.zeros(1, dtype=torch.uint8).expand(nbytes)


def within_host(work: Callable[[], Any]) -> Any:
    """Runs a host operation whose shapes or strides may not fit together."""
    try:
        return work()
    except (RuntimeError, ValueError) as error:
        if isinstance(error, torch.OutOfMemoryError) or "CUDA error" in str(error):
            raise
        if "memory" in str(error) and "allocate" in str(error):
            raise MemoryError(str(error)) from error
        raise MalformedRecording(f"a host operation that torch refuses: {error}") from error


def _dense(view: View) -> bool:
    step = 1
    for size, stride in zip(reversed(view.shape), reversed(view.stride), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _is_end(missing: NDArray[np.bool_], first: Sequence[int]) -> bool:
    """Whether all elements from ``first`` on are missing, counted row by row or along one axis."""
    if bool(missing.reshape(-1)[int(missing.argmax()):].all()):
        return True
    along = [axis for axis, index in enumerate(first) if index]
    if len(along) != 1:
        return False
    behind = np.arange(missing.shape[along[0]]) >= first[along[0]]
    side = [1] * missing.ndim
    side[along[0]] = -1
    return bool((missing == behind.reshape(side)).all())


def _granules(recording: Recording) -> dict[int, int]:
    """The smallest element with which each storage is used."""
    sizes: dict[int, int] = {}
    for view in (*recording.inputs, *recording.results, *chain(*map(views_in, recording.events))):
        size = itemsize(view)
        sizes[view.storage] = min(size, sizes.get(view.storage, size))
    return sizes
