"""JUDGE: draws inputs, has calls recorded and replayed, compares, applies limits.

Owns seeds, references and verdicts; `grade` is the straight line from a file to its report.
"""
