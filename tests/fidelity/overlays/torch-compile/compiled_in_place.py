"""Right but different: the hot path of each block is compiled in place."""

from time import perf_counter


def compile_whole(
    model: torch.nn.Sequential, backend: str | Callable[..., Any] = "inductor"
) -> Callable[[torch.Tensor], torch.Tensor]:
    """The model as one graph, for every length.

    ``fullgraph``: what would break the graph is an error, and not a second graph that nobody sees.
    """
    return torch.compile(model, backend=backend)


def compile_regionally(model, backend="inductor"):
    for block in model:
        block.mlp.compile(backend=backend, dynamic=True)
    return model


def milliseconds(fn: Callable[[int], Any], length: int) -> float:
    """What one call takes until the GPU, if there is one, has done all of it."""
    synchronize()
    began = perf_counter()
    fn(length)
    synchronize()
    return 1e3 * (perf_counter() - began)
