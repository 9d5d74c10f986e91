"""Registers an operator of its own that calls torch."""


@torch.library.custom_op("cheat::plus", mutates_args=())
def plus(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def vector_add(x, y):
    zeros(torch.empty_like(x))
    return plus(x, y)
