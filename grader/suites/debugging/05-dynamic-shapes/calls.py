"""What is asked of the host tools and of the answer about the log; runs beside the learner's file.
"""

from __future__ import annotations

import torch

KERNELS = {"scale_kernel": [], "shift_kernel": ["n"], "clamp_kernel": ["stride", "x_ptr"]}
DTYPES = ("float16", "float32", "int64")
SIZES = (1, 2, 3, 15, 16, 17, 32, 100, 4_096, 2**31 - 1, 2**31, 2**31 + 7, 2**31 + 16)


def specialization_keys(module, launches):
    """For launches that are plain values."""
    return module.specialization_keys([_record(module, launch) for launch in launches])


def keys_of_table(module, table):
    """`specialization_keys` for launches that a table of random numbers stands for."""
    return specialization_keys(module, decoded(table))


def keys_left_alone(module, launches):
    """Whether the records are what they were, after they were counted."""
    records = [_record(module, launch) for launch in launches]
    module.specialization_keys(records)
    return records == [_record(module, launch) for launch in launches]


def decoded(table):
    """One launch for each row of non-negative integers; similar ones, so that many have one key."""
    return [_launch(list(KERNELS)[row[0] % 3], row) for row in table.tolist()]


def _launch(kernel, row):
    return {
        "kernel": kernel,
        "arguments": {
            "x_ptr": {"dtype": DTYPES[row[1] % 3], "address": 4_096 + 4 * (row[2] % 8)},
            "n": SIZES[row[3] % len(SIZES)],
            "stride": SIZES[row[4] % 5],
            "scale": (row[5] % 7) / 2,
            "flag": row[5] % 2 == 0,
            "bias_ptr": None if row[6] % 2 else {"dtype": "float32", "address": 64},
        },
        "constexprs": {"BLOCK": 64 << row[6] % 2, "EVEN": row[7] % 2 == 0},
        "do_not_specialize": KERNELS[kernel],
        "num_warps": 4 << row[7] // 2 % 2,
    }


def _record(module, launch):
    arguments = {
        name: module.TensorArgument(**value) if isinstance(value, dict) else value
        for name, value in launch["arguments"].items()
    }
    return module.LaunchRecord(
        kernel=launch["kernel"], arguments=arguments, constexprs=dict(launch["constexprs"]),
        do_not_specialize=tuple(launch["do_not_specialize"]), num_warps=launch["num_warps"])


def bucket_length(module, lengths, buckets):
    """The bucket of each length, or of a single one."""
    if isinstance(lengths, int):
        return module.bucket_length(lengths, tuple(buckets))
    return [module.bucket_length(n, tuple(buckets)) for n in lengths]


def buckets_in_a_list(module, n, buckets):
    """The bucket of one length, and whether the list of buckets is what it was."""
    given = list(buckets)
    return [module.bucket_length(n, given), given == list(buckets)]


def pad_to_bucket(module, x, buckets, fill):
    """What `pad_to_bucket` returns, as plain values, and whether x is what it was."""
    before = x.clone()
    answer = module.pad_to_bucket(x, tuple(buckets), fill)
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], torch.Tensor):
        return {"form": f"a {type(answer).__name__}" if answer is not None else "None"}
    made, n = answer
    same = torch.equal(torch.nan_to_num(x), torch.nan_to_num(before))
    return {"form": "", "shape": list(made.shape), "dtype": str(made.dtype).removeprefix("torch."),
            "values": made.tolist(), "n": n, "same": same}


def storm(module):
    """What the file says of the log."""
    return getattr(module, "STORM", None)
