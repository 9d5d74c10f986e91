"""Chaos: whatever happens to a grade, it ends in time with a verdict or a sentence, and intact."""
