"""Records what host code does with memory as events, and the state of every storage."""

import ctypes
import enum
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NoReturn

import torch
import torch.utils._device

from grader.finding import Data, Fault, fault
from grader.recording.arena import view_of
from grader.recording.model import (
    FILLS,
    MAX_EVENTS,
    MAX_FINDINGS,
    Alloc,
    Event,
    Fill,
    Move,
    Recording,
    View,
)
from grader.report import Finding
from grader.worker.module_loader import current_line, lines_on_the_cpu

MAX_DIMENSIONS = 8  # of a tensor that crosses to the executor
MAX_READ = 64  # values in one call that host code may take out of tensors
_WATCHED = 64 << 10  # bytes at either end of a storage


class Stop(BaseException):
    """Ends the learner's call; not an Exception, so that `except Exception` lets it through."""


class StorageKind(enum.Enum):
    """The origin of a storage, which decides who may read it."""

    INPUT = "input"
    MADE = "made"  # by a recorded allocation; its values exist only in the executor
    COPIED = "copied"  # from inputs; its values are here until a kernel gets it
    PROBE = "probe"  # the result of a validation of inputs
    LITERAL = "literal"  # one Python number
    META = "meta"  # without memory


READABLE = (StorageKind.INPUT, StorageKind.COPIED, StorageKind.PROBE, StorageKind.LITERAL,
            StorageKind.META)


@dataclass
class RecordedStorage:
    number: int | None  # None where it never crosses to the executor
    kind: StorageKind
    keep: torch.UntypedStorage  # alive, so that its address is not used again
    ends: bytes  # its first and last bytes when it was added; nothing here writes to it
    name: str = ""  # of the parameter
    off_device: Finding | None = None  # S01, if it would not lie on the GPU of the inputs
    changing: bool = False  # an input that the function works on in place

    @property
    def untouched(self) -> bool:
        return self.ends == _ends(self.keep)


class Recorder:
    """Collects the events and findings of one call."""

    def __init__(self, path: str, inputs: Sequence[tuple[str, torch.Tensor, int]],
                 config: int = 0, *, changing: Collection[int] = (), trials: int = 0) -> None:
        """Args:
            path: the learner's file.
            inputs: the tensor arguments: name, tensor, and the number of its storage.
            config: the configuration that every autotuner takes, modulo their number.
            changing: the numbers of storages that the function works on in place.
            trials: how many configurations an autotuner tries before, as in the first call.
        """
        self.path = path
        self.works_in_place = bool(changing)
        self.trials = trials
        self.configurations = 1  # of the autotuner that had most to choose from
        self._config = config
        self.findings: list[dict[str, Any]] = []
        self.events: list[Event] = []
        self.launches = 0
        self._read = 0  # values that host code took out of tensors
        self.called = ""  # the torch function that the learner's code is in
        self.device: Any = None  # what that function was given as its device
        self._storages: dict[int, RecordedStorage] = {}
        self._next = 0
        for name, tensor, number in reversed(inputs):  # the first of several names stays
            self._next = max(self._next, number + 1)
            self.add(tensor, StorageKind.INPUT, number, name).changing = number in changing
        self._inputs = tuple(view_of(tensor, number) for _, tensor, number in inputs)

    # -- findings -------------------------------------------------------------------------------

    def find(self, code: str, data: Data, line: int | None = None) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(code, data, line or current_line(self.path)).to_json())

    def stop(self, code: str, data: Fault) -> NoReturn:
        self.find(code, data)
        raise Stop(Finding(code, data).seen)

    def choose(self, configs: Sequence[Any]) -> Any:
        """The configuration that a tuner takes of those that survived pruning."""
        self.configurations = max(self.configurations, len(configs))
        return configs[self._config % len(configs)]

    # -- storages -------------------------------------------------------------------------------

    def add(self, tensor: torch.Tensor, kind: StorageKind, number: int | None = None,
            name: str = "") -> RecordedStorage:
        storage = tensor.untyped_storage()
        recorded = RecordedStorage(number, kind, storage, _ends(storage), name)
        self._storages[storage._cdata] = recorded
        return recorded

    def _storage(self, tensor: torch.Tensor) -> RecordedStorage | None:
        return self._storages.get(tensor.untyped_storage()._cdata)

    def kind(self, tensor: torch.Tensor) -> StorageKind | None:
        """None for a storage that was allocated outside the recorded call."""
        if tensor.device.type == "meta":
            return StorageKind.META
        storage = self._storage(tensor)
        return storage.kind if storage else None

    def readable(self, tensor: torch.Tensor) -> bool:
        return self.kind(tensor) in READABLE

    def read(self, tensor: torch.Tensor, shown: str) -> None:
        """Counts values that host code takes out of a tensor, and stops the call at too many.

        A check of arguments needs few. A tensor that wraps one Python number does not count.
        """
        kind = self.kind(tensor)
        if kind not in READABLE:
            self.stop("X01", fault("host read", code=shown))
        if kind in (StorageKind.LITERAL, StorageKind.META):
            return
        self._read += tensor.numel()
        if self._read > MAX_READ:
            self.stop("X01", fault("host reads", code=shown, count=self._read, most=MAX_READ))

    def view(self, tensor: torch.Tensor) -> View | None:
        """The memory of a tensor as a view of a recorded storage; None for any other memory.

        A lazily conjugated tensor is described by its memory, unconjugated.
        """
        if tensor.device.type == "meta":
            return None
        if tensor.is_neg():
            self.stop("L05", fault("negated"))
        storage = self._storage(tensor)
        if storage is None or storage.number is None:
            return None
        if tensor.dim() > MAX_DIMENSIONS:
            self.stop("L05", fault("dimensions", count=tensor.dim(), most=MAX_DIMENSIONS))
        return view_of(tensor, storage.number)

    def input_name(self, tensor: torch.Tensor) -> str:
        """The parameter whose memory this is, if it must not change; else empty."""
        storage = self._storage(tensor)
        fixed = storage is not None and storage.kind is StorageKind.INPUT and not storage.changing
        return storage.name if storage and fixed else ""

    # -- events ---------------------------------------------------------------------------------

    def note(self, event: Event) -> None:
        if len(self.events) >= MAX_EVENTS:
            self.stop("T03", fault("too many events", most=MAX_EVENTS))
        self.events.append(event)

    def allocated(self, tensor: torch.Tensor, operation: str, like: Sequence[torch.Tensor] = (),
                  kind: StorageKind = StorageKind.MADE) -> None:
        """Records an allocation, on the device of ``like`` unless the call named one."""
        if tensor.device.type == "meta":
            return
        self.note(Alloc(self._next, tensor.untyped_storage().nbytes()))
        self.add(tensor, kind, self._next).off_device = self._off_device(operation, like)
        self._next += 1

    def _off_device(self, operation: str, like: Sequence[torch.Tensor]) -> Finding | None:
        """S01 for an allocation on the CPU wherever the inputs are."""
        line = current_line(self.path)
        if self.device is not None:
            if self.device != "cpu" or line not in lines_on_the_cpu(self.path):
                return None
        elif like:
            storage = self._storage(like[0])
            return storage.off_device if storage else None
        elif torch.utils._device.CURRENT_DEVICE is not None:
            return None  # `torch.set_default_device` names one for all
        device = "cpu" if self.device else ""
        return Finding("S01", fault("on the CPU", code=operation, device=device), line)

    def moved_to_a_device(self, tensor: torch.Tensor) -> None:
        """Records that host code named a device for a tensor; here the tensor stays in place."""
        if tensor.device.type != "meta" and (storage := self._storage(tensor)):
            storage.off_device = None

    def check_device(self, tensor: torch.Tensor) -> None:
        """Reports S01 for a tensor on the CPU that a kernel or the caller gets.

        A function that gets no tensor may name its device as it likes.
        """
        storage = self._storage(tensor) if tensor.device.type != "meta" else None
        if self._inputs and storage and (finding := storage.off_device):
            self.find(finding.code, finding.data, finding.line)
            storage.off_device = None  # once is enough

    def filled(self, tensor: torch.Tensor, value: Any, operation: str) -> None:
        """Records that host code fills a tensor; only neutral values may come from the host."""
        if isinstance(value, torch.Tensor) and self.readable(value):
            value = value.item()
        if tensor.device.type == "meta":
            return
        if not isinstance(value, int | float) or value not in FILLS:
            self.stop("X01", fault("fill value", code=operation, value=f"{value!r:.40}"))
        target = self.view(tensor)
        if target is None:
            self.stop("X01", fault("foreign fill", code=operation))
        if tensor.numel():
            self.note(Fill(target, float(value), current_line(self.path)))
        self.forget(tensor)

    def moved(self, target: torch.Tensor, source: torch.Tensor, operation: str) -> None:
        if "meta" in (target.device.type, source.device.type):
            return
        to, origin = self.view(target), self.view(source.expand(target.shape))
        if to is None or origin is None or target.is_conj():
            self.stop("X01", fault("foreign copy", code=operation))
        if target.numel():
            self.note(Move(to, origin, current_line(self.path), source.is_conj()))

    def forget(self, tensor: torch.Tensor) -> None:
        """From here on the values of a copy are storage to the executor only.

        So are those of an input that is worked on in place.
        """
        storage = self._storage(tensor)
        if storage and (storage.kind is StorageKind.COPIED or storage.changing):
            storage.kind = StorageKind.MADE

    def check_untouched(self) -> None:
        """Reports X01 for memory that was written through a pointer, past torch."""
        for storage in self._storages.values():
            if not storage.untouched:
                storage.ends = _ends(storage.keep)
                self.find("X01", fault("written past torch", name=storage.name))

    def recording(self, results: Sequence[torch.Tensor], returned_tuple: bool) -> Recording:
        """The recording; without returned views if one of them is not recorded memory."""
        self.check_untouched()
        views = tuple(view for view in takewhile(bool, map(self._result, results)) if view)
        return Recording(self._inputs, tuple(self.events),
                         views if len(views) == len(results) else (), returned_tuple)

    def _result(self, tensor: torch.Tensor) -> View | None:
        self.check_device(tensor)
        kind = self.kind(tensor)
        view = self.view(tensor)
        if tensor.is_conj():
            self.find("X01", fault("conjugated result"))
            return None
        if view is None:
            self.find("X01", fault("foreign result", origin=kind.value if kind else ""))
        return view


def _ends(storage: torch.UntypedStorage) -> bytes:
    """The first and last bytes of a storage on the CPU."""
    if storage.device.type != "cpu":
        return b""
    size, start = storage.nbytes(), storage.data_ptr()
    if size <= 2 * _WATCHED:
        return ctypes.string_at(start, size) if size else b""
    last = ctypes.string_at(start + size - _WATCHED, _WATCHED)
    return ctypes.string_at(start, _WATCHED) + last
