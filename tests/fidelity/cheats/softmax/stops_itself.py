"""Kills itself with a signal."""

import os
import signal

from ._common import softmax_kernel


def softmax(x):
    os.kill(os.getpid(), signal.SIGABRT)
    return x
