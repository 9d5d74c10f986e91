"""Hides torch in a layer that was made at import."""

LAYER = torch.nn.Softmax(dim=1)


def softmax(x):
    launch(x)
    return LAYER(x)
