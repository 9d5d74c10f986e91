"""Submissions as platforms and people arrange them: one module a layout."""

from tritonlab.classroom.importers.incoming import Incoming
from tritonlab.classroom.importers.layouts import AUTO, LAYOUTS, read, recognize

__all__ = ["AUTO", "LAYOUTS", "Incoming", "read", "recognize"]
