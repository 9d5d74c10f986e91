"""`python -m tritonlab`, the same as the command `tritonlab`."""

from __future__ import annotations

from tritonlab.cli import main

main()
