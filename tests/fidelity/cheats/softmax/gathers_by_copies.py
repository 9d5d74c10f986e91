"""Sorts each row with one host copy per element, in an order that it found on the host."""


def softmax(x):
    x = x.contiguous()
    flat, moved = x.view(-1), torch.empty_like(x)
    for i in range(x.numel()):
        moved.view(-1)[i].copy_(flat[i])
    return launch(moved)
