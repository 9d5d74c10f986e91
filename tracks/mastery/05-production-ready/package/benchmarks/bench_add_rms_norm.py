"""Times `add_rms_norm` and the two PyTorch operations that it replaces.

    python -m benchmarks.bench_add_rms_norm --json out.json      from the package folder
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line: --json FILE or -, --warmup, --repeats. The README gives the schema."""
    ...


if __name__ == "__main__":
    main()
