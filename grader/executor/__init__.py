"""EXECUTE: the trusted processes that extract kernels and replay recordings on an engine."""
