"""The arguments of a launch: every parameter bound, views in the form that an engine takes."""

from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from triton.tools.tensor_descriptor import TensorDescriptor

from grader.engine.compiler.compile import address
from grader.engine.interpreter.numerics import TRITON
from grader.finding import fault
from grader.recording.model import Argument, Descriptor, Launch, MalformedRecording, View, views_of
from grader.report import Finding, Refusal

_DTYPES = {dtype.name: dtype for dtype in TRITON.values()} | TRITON
Kernels = Mapping[str, Any]  # each a kernel, or the finding that says why it cannot be used


class LaunchRefused(Refusal):
    """A launch that does not run; ``finding`` says why."""


@dataclass(frozen=True)
class Binder:
    """Makes arguments for an engine: ``tensor`` and ``descriptor`` say what it takes for these."""

    kernels: Kernels
    tensor: Callable[[View], Any]
    descriptor: Callable[[Descriptor], Any]

    def bind(self, launch: Launch) -> tuple[Any, dict[str, Any]]:
        """The kernel of a launch, and a value for each of its parameters in order.

        Raises:
            LaunchRefused: there is no such kernel, it cannot be used, or a constexpr gets a tensor.
            MalformedRecording: names or arguments do not fit the kernel.
        """
        if launch.kernel not in self.kernels:
            raise LaunchRefused(Finding(
                "L05", fault("no kernel", kernel=f"{launch.kernel:.60}"), launch.line))
        kernel = self._usable(launch.kernel)
        unknown = launch.arguments.keys() - {parameter.name for parameter in kernel.params}
        if unknown:
            raise MalformedRecording(f"`{launch.kernel}` has no parameter {min(unknown)!r:.40}")
        bound = {}
        for parameter in kernel.params:
            argument = launch.arguments.get(parameter.name)
            if argument is None:
                if not parameter.has_default:
                    raise MalformedRecording(
                        f"`{launch.kernel}` lacks argument `{parameter.name}`")
                bound[parameter.name] = parameter.default
                continue
            if parameter.is_constexpr and views_of(argument):
                raise LaunchRefused(Finding(
                    "L05", fault("constexpr tensor", name=parameter.name), launch.line))
            bound[parameter.name] = self._value(argument)
        return kernel, bound

    def _value(self, argument: Argument) -> Any:
        match argument.kind:
            case "tensor":
                return self.tensor(argument.value)
            case "descriptor":
                return self.descriptor(argument.value)
            case "tuple":
                items = (self._value(item) for item in argument.value)
                return _named(argument.fields)(*items) if argument.fields else tuple(items)
            case "dtype":
                return _dtype(argument.value)
            case "function":
                if argument.value not in self.kernels:
                    raise MalformedRecording(f"there is no jit function {argument.value!r:.40}")
                return self._usable(argument.value)
        return argument.value

    def _usable(self, name: str) -> Any:
        kernel = self.kernels[name]
        if isinstance(kernel, Finding):
            raise LaunchRefused(kernel)
        return kernel


def without_memory(kernels: Kernels) -> Binder:
    """Makes arguments for the compiler, with addresses in place of tensors."""
    def tensor(view: View) -> Any:
        return address(view.dtype, view.offset)

    return Binder(kernels, tensor, lambda given: host_descriptor(given, tensor(given.base)))


def host_descriptor(descriptor: Descriptor, base: Any) -> TensorDescriptor:
    """Makes Triton's descriptor, of a tensor or of an address in its place."""
    more = {"round_f32_to_tf32": True} if descriptor.round_f32_to_tf32 else {}
    return TensorDescriptor(base, list(descriptor.shape), list(descriptor.strides),
                            list(descriptor.block_shape), descriptor.padding, **more)


@lru_cache(maxsize=64)
def _named(fields: tuple[str, ...]) -> Any:
    return namedtuple("Arguments", fields)


def _dtype(name: str) -> Any:
    """A type by torch's name or by Triton's own, such as ``float16`` or ``fp16``."""
    if name not in _DTYPES:
        raise MalformedRecording(f"there is no dtype {name!r:.40}")
    return _DTYPES[name]
