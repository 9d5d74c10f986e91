"""Runs launches on a real GPU: red zones around tensors, timing, measured ceilings."""
