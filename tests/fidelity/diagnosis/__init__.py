"""Diagnosis of wrong kernels: how often a grade names a cause and the place of the mistake."""
