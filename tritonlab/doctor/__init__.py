"""What this machine can decide: versions, isolation, GPU, self-tests, the tour."""
