"""Copies its input in a kernel."""


def softmax(x):
    return copied(x.contiguous())
