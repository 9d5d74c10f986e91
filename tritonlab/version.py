"""The version of tritonlab."""

__version__ = "0.1.0"
