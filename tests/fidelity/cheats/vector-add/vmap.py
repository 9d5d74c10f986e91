"""Maps Python's + over the tensors with torch.vmap."""


def vector_add(x, y):
    zeros(torch.empty_like(x))
    return torch.vmap(lambda a, b: a + b)(x, y) if x.dim() else x + y
