"""Has a thread write into the tensor that the kernel was launched on."""

from concurrent.futures import ThreadPoolExecutor


def vector_add(x, y):
    out = zeros(torch.empty_like(x))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: out.copy_(x + y)).result()
    return out
