"""Tells what launches do at their real size, from a few of their programs."""
