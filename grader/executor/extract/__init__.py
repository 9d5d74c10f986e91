"""Extracts kernels from the syntax tree of a file; the rest of the file never runs."""
