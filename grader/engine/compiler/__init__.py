"""Compiles launches for a named GPU on a machine without one, and reads the result."""
