"""The output of a child: its head, its tail, and how many bytes were dropped between."""

from __future__ import annotations


class Output:
    """Collects bytes and keeps at most ``most`` of them."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0

    def add(self, data: bytes) -> None:
        self._seen += len(data)
        room = self._half - len(self._head)
        self._head += data[:room] if room > 0 else b""
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def text(self) -> str:
        tail = self._tail[-self._half :]
        head = self._head.decode("utf-8", "replace")
        left_out = self._seen - len(self._head) - len(tail)
        if left_out:
            head += f"\n[… {left_out} bytes were left out …]\n"
        return head + tail.decode("utf-8", "replace")
