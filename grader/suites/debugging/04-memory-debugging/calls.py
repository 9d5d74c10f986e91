"""What is asked of the reports and of the tools; runs beside the learner's file.

Corruptors write through the storage of the tensor that they get, as a kernel would that leaves it.
"""

from __future__ import annotations

import dataclasses

import torch

PATTERN = 0xA5
OUTSIDE = "outside"  # no byte of the allocation lies there


def report(module, name):
    """What the file says of one report; None where it says nothing."""
    return module.REPORTS.get(name) if isinstance(module.REPORTS, dict) else None


def access_stats(module, offsets, itemsize, base_alignment=None):
    more = () if base_alignment is None else (base_alignment,)
    return module.access_stats(offsets, itemsize, *more)


def alignment_of(module, dtype, offsets):
    """Of views that begin so many elements behind the start of one allocation."""
    whole = torch.zeros(64, dtype=getattr(torch, dtype))
    assert whole.data_ptr() % 16 == 0
    return [module.alignment_of(whole[offset:]) for offset in offsets]


def _made(module, shape, dtype, red_zone):
    more = {} if red_zone is None else {"red_zone": red_zone}
    return module.guarded_empty(shape, getattr(torch, dtype), **more)


def guarded_empty(module, shape, dtype, red_zone=None):
    """What the tensor is, and which bytes lie in and around it."""
    guarded = _made(module, shape, dtype, red_zone)
    tensor, zone = guarded.tensor, red_zone or 256
    whole, start = _memory(tensor)
    stop = start + tensor.numel() * tensor.element_size()
    inside = whole[start:stop]
    return {
        "shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch."),
        "contiguous": tensor.is_contiguous(), "device": tensor.device.type,
        "address": tensor.data_ptr() % 16, "before": start, "after": whole.numel() - stop,
        "pattern before": bool((whole[max(0, start - zone):start] == PATTERN).all()),
        "pattern after": bool((whole[stop:stop + zone] == PATTERN).all()),
        "held": _held(tensor, inside),
        "check": _told(guarded),
    }


def corrupted(module, shape, dtype, red_zone, changes, values=(0,)):
    """What `check` tells after some bytes were written.

    Each change has a side, an offset from the tensor's edge and a length; offsets below 0 lie in
    the tensor. The values take turns.
    """
    guarded = _made(module, shape, dtype, red_zone)
    for number, (side, offset, length) in enumerate(changes):
        if not _write(guarded.tensor, side, offset, length, values[number % len(values)]):
            return {OUTSIDE: [side, offset + length]}
    return {"first": _told(guarded), "again": _told(guarded)}


def each_byte(module, red_zone):
    """Bytes of both zones whose change is not told as what it is, one after the other."""
    missed = []
    for side in ("before", "after"):
        for offset in range(red_zone):
            guarded = _made(module, [3, 5], "float32", red_zone)
            if not _write(guarded.tensor, side, offset, 1, 0x5A):
                return {OUTSIDE: [side, offset + 1]}
            told = _told(guarded)
            if told != [[side, offset, 1]]:
                missed.append([side, offset, told[:3]])
    return {"missed": len(missed), "first": missed[:1]}


def filled(module, shape, dtype):
    """What `check` tells when every element of the tensor was written, and whether it holds that.
    """
    guarded = _made(module, shape, dtype, None)
    guarded.tensor.fill_(1)
    return {"kept": bool((guarded.tensor == 1).all()), "first": _told(guarded)}


def two_at_once(module):
    """Two guarded tensors; only the first one's zone is written to."""
    one, other = (_made(module, [7], "float32", None) for _ in range(2))
    if not _write(one.tensor, "after", 2, 3, 0):
        return {OUTSIDE: ["after", 5]}
    return {"first": _told(one), "other": _told(other)}


def _held(tensor, inside):
    """The first element that is not NaN, or byte that differs from the pattern; "" without one."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        written = tensor[~tensor.isnan()]
        return f"an element is {written[0].item():.6g}" if written.numel() else ""
    written = inside[inside != PATTERN]
    return f"a byte is 0x{written[0].item():02X}" if written.numel() else ""


def _memory(tensor):
    """All bytes of the allocation, and where in it the tensor begins."""
    whole = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
    return whole, tensor.storage_offset() * tensor.element_size()


def _write(tensor, side, offset, length, value):
    """Write bytes beside the tensor; whether its allocation has them all."""
    whole, start = _memory(tensor)
    stop = start + tensor.numel() * tensor.element_size()
    first = start - offset - length if side == "before" else stop + offset
    if first < 0 or first + length > whole.numel():
        return False
    whole[first:first + length] = value
    return True


def _told(guarded):
    """The corruptions as lists; whatever else came stays as it is, for the check to say so."""
    found = guarded.check()
    if not isinstance(found, list):
        return found
    return [[one.side, one.offset, one.length] if dataclasses.is_dataclass(one) else one
            for one in found[:200]]
