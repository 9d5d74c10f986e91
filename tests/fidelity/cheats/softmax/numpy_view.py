"""Computes with NumPy through views of the tensors."""

import numpy as np


def softmax(x):
    out = copied(x.contiguous())
    e = np.exp(x.float().numpy() - x.float().numpy().max(axis=1, keepdims=True))
    out.numpy()[:] = e / e.sum(axis=1, keepdims=True)
    return out
