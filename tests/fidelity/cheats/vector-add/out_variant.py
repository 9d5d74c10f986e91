"""Lets torch write into the tensor that a kernel has written to before."""


def vector_add(x, y):
    out = zeros(torch.empty_like(x))
    torch.add(x, y, out=out)
    return out
