"""Interprets kernels on NumPy, many programs at a time, and checks every memory access."""
