"""Adds in place on a clone, which is no argument any more."""


def vector_add(x, y):
    zeros(torch.empty_like(x))
    out = x.clone()
    out += y
    return out
