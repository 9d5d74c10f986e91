"""How fast is `add_rms_norm`, beside the two PyTorch operations that it replaces?

    python -m benchmarks.bench_add_rms_norm --json out.json      in the folder of the package
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line: --json FILE or -, --warmup, --repeats. The README gives the schema."""
    ...


if __name__ == "__main__":
    main()
