"""Calls planners with configurations, and records the launches of autotuned functions."""

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
    """Returns the configurations of ``make_configs`` as plain values."""
    return [described(config) for config in module.make_configs()]


def described(config: Any) -> dict[str, Any]:
    return {"tile": tuple(config.kwargs.get(side) for side in SIDES),
            "kwargs": {name: repr(value) for name, value in sorted(config.kwargs.items())},
            "stages": config.num_stages, "warps": config.num_warps}


def pruned(module: Any, made: Sequence[Sequence[int]], problems: Sequence[Sequence[int]],
           limits: Sequence[int | None]) -> list[list[int]]:
    """Returns the indices of the configurations that are kept, for each limit and problem.

    ``made`` has (BLOCK_M, BLOCK_N, BLOCK_K, stages, warps) of each configuration. Without a limit,
    the learner's default applies. -1 is a configuration that is not in the input.
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
def recorded_launches() -> Iterator[list[dict[str, Any]]]:
    """Records launches without running them; autotuners use the first configuration they keep."""
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
    """Returns programs and tuning of ``matmul_persistent`` for each (M, N, K, num_sms)."""
    found = []
    for m, n, k, num_sms in problems:
        a, b = (torch.zeros(sides, dtype=torch.float16) for sides in ((m, k), (k, n)))
        with recorded_launches() as launches:
            module.matmul_persistent(a, b, num_sms=num_sms)
        found.append(launches[-1] if launches else {"programs": 0})
    return found


def softmax_programs(module: Any, problems: Sequence[Sequence[int]]) -> list[int]:
    """Returns the programs of ``persistent_softmax`` per (rows, columns, num_programs)."""
    found = []
    for n_rows, n_cols, num_programs in problems:
        with recorded_launches() as launches:
            module.persistent_softmax(torch.zeros(n_rows, n_cols), num_programs=num_programs)
        found.append(sum(launch["programs"] for launch in launches))
    return found


def tuned_scaling(module: Any) -> dict[str, Any]:
    """Returns the number of configurations of ``scale_rows_``; 0 without an autotuner."""
    with recorded_launches() as launches:
        module.scale_rows_(torch.zeros(4, 64), torch.zeros(4))
    return {"configs": launches[-1].get("configs", 0) if launches else 0}
