"""Checks of this machine: versions, isolation, GPU, self-tests, the tour."""
