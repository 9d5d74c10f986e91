"""Has torch's compiler make a graph, so that forks need not be the first to do so."""

import torch
import torch._dynamo
import torch.testing._internal.optests  # what `torch.library.opcheck` needs

from grader.gpu import detect


def warm() -> None:
    """Traces a small function once: the first time loads most of the compiler.

    Tracing starts CUDA. Where there is a GPU, which this process does not see, a fork could not
    start CUDA anew and see it: there the imports have to do.
    """
    if detect.names():
        return
    compiled = torch.compile(lambda x: (2 * x).relu(), backend="aot_eager", dynamic=True)
    compiled(torch.ones(8))
    torch._dynamo.reset()
