"""Framing between judge and child: JSON objects after their length, over a Unix socket."""

import json
import socket
from collections.abc import Mapping
from typing import Any

import msgspec

from grader.sandbox.errors import MalformedReply
from grader.sandbox.limits import MIB

MAX_REQUEST = 8 * MIB
MAX_REPLY = 4 * MIB
MAX_DESCRIPTORS = 8  # of one request
HEADER = 4  # bytes of the length


def encode(message: Mapping[str, Any]) -> bytes:
    """Writes one frame. The sender writes NaN and infinities as texts: JSON has neither."""
    try:
        body = msgspec.json.encode(message)
    except (TypeError, ValueError):  # a number of NumPy's, or half of a character
        body = json.dumps(message, separators=(",", ":")).encode()
    return len(body).to_bytes(HEADER, "big") + body


def decode(body: bytes) -> dict[str, Any]:
    """Reads one frame from an untrusted child.

    Raises:
        MalformedReply: it is not a JSON object.
    """
    try:
        message = _parsed(body)
    except (ValueError, RecursionError) as error:
        raise MalformedReply(f"not JSON: {error}"[:200]) from None
    if not isinstance(message, dict):
        raise MalformedReply(f"a JSON {type(message).__name__}, not an object")
    return message


def _parsed(body: bytes | bytearray) -> Any:
    """Reads JSON; the standard library takes more of it, at a third of the speed."""
    try:
        return msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return json.loads(body, parse_constant=_no_constant)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Waits, in the child, for a request; None when the judge has closed the channel."""
    header, descriptors, _, _ = socket.recv_fds(
        channel, HEADER, MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC | socket.MSG_WAITALL)
    if len(header) < HEADER:
        return None
    body = bytearray()
    size = int.from_bytes(header, "big")
    while len(body) < size:
        part = channel.recv(min(size - len(body), MIB))
        if not part:
            return None
        body += part
    return _parsed(body), list(descriptors)
