"""What a case launches, as the recorder notes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from triton.runtime.jit import JITFunction

from grader.recording.arena import view_of
from grader.recording.model import Launch, Recording
from grader.worker.launch_capture import capture_launches
from grader.worker.recorder import Recorder

from .case import Case


@dataclass(frozen=True)
class Recorded:
    """The launches of a case, with its kernels by name and its tensors by number of storage."""

    recording: Recording
    kernels: dict[str, JITFunction[Any]]
    tensors: tuple[torch.Tensor, ...]


def record(case: Case) -> Recorded:
    """Run the host function of a case; nothing is launched."""
    tensors = case.tensors("cpu")
    path = case.body.__code__.co_filename
    inputs = [(f"tensor {number}", tensor, number) for number, tensor in enumerate(tensors)]
    recorder = Recorder(path, inputs)
    with capture_launches(recorder, lambda *args, **kwargs: None):
        case.body(*tensors)
    views = tuple(view_of(tensor, number) for number, tensor in enumerate(tensors))
    events = tuple(event for event in recorder.events if isinstance(event, Launch))
    kernels = {name: value for name, value in case.body.__globals__.items()
               if isinstance(value, JITFunction)}
    return Recorded(Recording(views, events, ()), kernels, tuple(tensors))
