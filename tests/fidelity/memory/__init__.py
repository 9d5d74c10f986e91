"""Kernels that prove the memory checks: wrong ones to be found, right ones to be left alone."""
