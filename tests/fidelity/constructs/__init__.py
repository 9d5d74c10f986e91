"""Triton's language, construct by construct: what it means, who compiles it, who computes it."""
