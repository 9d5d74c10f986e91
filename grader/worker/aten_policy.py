"""The policy for ATen operations in host code: each has a class, such as view or deny."""

from typing import Any

import torch

Op = Any  # torch._ops.OpOverload

_CLASSES = {name: kind for kind, names in {  # of all overloads of an operation
    "allocate": "empty empty_like empty_strided empty_permuted new_empty new_empty_strided",
    "create": "zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full",
    "fill": "zero_ fill_",
    "view": """view _unsafe_view reshape _reshape_alias as_strided t transpose permute expand
        unsqueeze squeeze select slice split split_with_sizes unbind alias detach unfold diagonal
        view_as view_as_real view_as_complex _conj _neg_view""",
    "copy": "clone _to_copy",
    "copy_into": "copy_",
    "lift": "lift_fresh",
    "meta": """promote_types result_type is_same_size is_pinned size stride numel dim sym_size
        sym_stride sym_numel sym_storage_offset storage_offset is_contiguous can_cast is_nonzero""",
    "validate": """amin amax any all isnan isinf isfinite isposinf isneginf equal allclose eq ne lt
        le gt ge abs logical_and logical_or logical_not logical_xor bitwise_and bitwise_or
        bitwise_not""",
    "read": "_local_scalar_dense item",
}.items() for name in names.split()}

_DEFINED_BY_TORCH = frozenset(torch.library._defs)  # before any file is loaded

_WRITTEN_DIFFERENTLY = {
    "mm": "matmul", "_softmax": "softmax", "_log_softmax": "log_softmax",
    "native_layer_norm": "nn.functional.layer_norm", "_fused_rms_norm": "nn.functional.rms_norm",
    "native_group_norm": "nn.functional.group_norm", "convolution": "nn.functional.conv2d",
    "native_batch_norm": "nn.functional.batch_norm", "native_dropout": "nn.functional.dropout",
    "_scaled_dot_product_flash_attention_for_cpu": "nn.functional.scaled_dot_product_attention",
    "_cdist_forward": "cdist", "constant_pad_nd": "nn.functional.pad", "lift_fresh": "tensor",
}


def base(op: Op) -> str:
    """The operation without namespace and overload: ``fill_`` of ``aten::fill_.Scalar``."""
    return str(op._schema.name).rpartition("::")[2]


def is_of_the_file(op: Op) -> bool:
    """Whether the learner's file defined the operator, by `torch.library`."""
    name = str(op._schema.name)
    return name in torch.library._defs and name not in _DEFINED_BY_TORCH


def classify(op: Op, args: tuple[Any, ...]) -> str:
    """The class of an operation, a key of ``torch_modes._TREATMENTS``."""
    name, overload = base(op), str(op._overloadname)
    if str(op._schema.name).startswith("profiler::"):
        return "meta"
    if not str(op._schema.name).startswith("aten::") or "out" in overload.split("_"):
        return "deny"
    if name in ("min", "max") and overload == "default":
        return "validate"  # of the whole tensor; along a dimension they are reductions
    if name in ("mul", "nonzero") and all(a.dtype is torch.bool for a in tensors(args)):
        return "validate"  # what `isfinite` is made of; where a check found something
    return _CLASSES.get(name, "deny")


def tensors_written(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The arguments that the operation changes in place."""
    targets: list[torch.Tensor] = []
    for position, parameter in enumerate(op._schema.arguments):
        if parameter.alias_info is not None and parameter.alias_info.is_write:
            value = args[position] if position < len(args) else kwargs.get(parameter.name)
            targets += tensors((value,))
    return targets


def tensors(values: Any) -> list[torch.Tensor]:
    """All tensors in nested tuples and lists."""
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, tuple | list):
        return [tensor for value in values for tensor in tensors(value)]
    return []


def python_name(op: Op, called: str) -> str:
    """The operation as Python code calls it: ``torch.softmax`` for ``aten._softmax``.

    ``called`` is the torch function that led to it; empty if there was none.
    """
    if called.startswith("torch."):
        name = called.rpartition(".")[2]
        name = name.removeprefix("__").removesuffix("__")
        return f"torch.{name}" if hasattr(torch, name) else called
    if not str(op._schema.name).startswith("aten::"):
        return str(op._schema.name)
    name = _WRITTEN_DIFFERENTLY.get(base(op), base(op).lstrip("_"))
    return f"torch.{name}" if "." in name or hasattr(torch, name) else f"torch.Tensor.{name}"
