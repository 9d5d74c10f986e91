"""What is asked of the tools and the diagnoses; runs beside the learner's file."""

from __future__ import annotations

import torch


def diagnosis(module, name):
    """What the file says of one kernel; None where it says nothing."""
    return module.DIAGNOSES.get(name)


def compare(module, pair, rtol, atol, dtype=""):
    """`compare` on the two halves of `pair`, the first of them as `dtype` if that is given."""
    actual, expected = pair[0].clone(), pair[1].clone()
    if dtype:
        actual = actual.to(getattr(torch, dtype))
    try:
        return module.compare(actual, expected, rtol=rtol, atol=atol)
    except Exception as error:  # shapes and types are right here: it has to tell, not to raise
        return {"raised": f"{type(error).__name__}: {error}"}


def compare_shapes(module, actual, expected):
    return module.compare(actual, expected, rtol=0.0, atol=1.0)


def compare_inputs(module, pair):
    """Whether `compare` left both tensors as they were."""
    actual, expected = pair[0].clone(), pair[1].clone()
    module.compare(actual, expected, rtol=0.0, atol=0.0)
    kept = torch.stack([actual, expected])
    return torch.equal(kept.view(torch.uint8), pair.contiguous().view(torch.uint8))  # NaN included
