"""Calls planners with configurations, and notes how autotuned functions launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any
from unittest import mock

import torch
import triton
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

SIDES = ("BLOCK_M", "BLOCK_N", "BLOCK_K")


def configurations(module: Any) -> list[dict[str, Any]]:
    """What ``make_configs`` answers, as plain values."""
    return [described(config) for config in module.make_configs()]


def described(config: Any) -> dict[str, Any]:
    return {"tile": tuple(config.kwargs.get(side) for side in SIDES),
            "kwargs": {name: repr(value) for name, value in sorted(config.kwargs.items())},
            "stages": config.num_stages, "warps": config.num_warps}


def pruned(module: Any, made: Sequence[Sequence[int]], problems: Sequence[Sequence[int]],
           limits: Sequence[int | None]) -> list[list[int]]:
    """Which of the configurations are kept, by number, for each limit and problem.

    ``made`` holds (BLOCK_M, BLOCK_N, BLOCK_K, stages, warps) of each configuration. Without a limit
    the learner's own default counts. -1 is a configuration that was not among those given.
    """
    configs = [triton.Config(dict(zip(SIDES, sides, strict=True)), num_stages=stages,
                             num_warps=warps) for *sides, stages, warps in made]
    kept = []
    for limit in limits:
        for m, n, k in problems:
            given = list(configs)
            named = {"a_ptr": None, "b_ptr": None, "c_ptr": None, "M": m, "N": n, "K": k}
            how = {} if limit is None else {"smem_limit": limit}
            chosen = module.prune_configs(given, named, grid=None, warmup=False, **how)
            if len(given) != len(configs):
                raise ValueError("prune_configs changed the list that it was given")
            kept.append([next((number for number, config in enumerate(configs) if config is one),
                              -1) for one in chosen])
    return kept


@contextmanager
def only_noted() -> Iterator[list[dict[str, Any]]]:
    """Inside, launches are noted and nothing runs; autotuners take the first of what they keep."""
    launches: list[dict[str, Any]] = []
    tuned: dict[str, Any] = {}

    def launch(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        values = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        sizes = grid(values) if callable(grid) else grid
        launches.append({"programs": prod(sizes), **tuned})
        tuned.clear()

    def tune(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        given = {**self.nargs, **kwargs}
        kept = self.prune_configs(kwargs)
        tuned.update(tiles=[described(config)["tile"] for config in kept],
                     configs=len(set(map(str, self.configs))),
                     key=tuple(str(given.get(name)) for name in self.keys))
        return self.fn.run(*args, **kwargs, **kept[0].all_kwargs())

    with mock.patch.object(JITFunction, "run", launch), mock.patch.object(Autotuner, "run", tune):
        yield launches


def products(module: Any, problems: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """The launch of ``matmul_persistent`` for each (M, N, K, num_sms): programs and tuning."""
    found = []
    for m, n, k, num_sms in problems:
        a, b = (torch.zeros(sides, dtype=torch.float16) for sides in ((m, k), (k, n)))
        with only_noted() as launches:
            module.matmul_persistent(a, b, num_sms=num_sms)
        found.append(launches[-1] if launches else {"programs": 0})
    return found


def softmax_programs(module: Any, problems: Sequence[Sequence[int]]) -> list[int]:
    """How many programs ``persistent_softmax`` starts for each (rows, columns, num_programs)."""
    found = []
    for n_rows, n_cols, num_programs in problems:
        with only_noted() as launches:
            module.persistent_softmax(torch.zeros(n_rows, n_cols), num_programs=num_programs)
        found.append(sum(launch["programs"] for launch in launches))
    return found


def tuned_scaling(module: Any) -> dict[str, Any]:
    """How the kernel of ``scale_rows_`` is tuned; nothing is where it is not."""
    with only_noted() as launches:
        module.scale_rows_(torch.zeros(4, 64), torch.zeros(4))
    return {"configs": launches[-1].get("configs", 0) if launches else 0}
