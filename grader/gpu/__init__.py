"""The GPU of this machine: which one it is, whether it works, what it can reach."""
