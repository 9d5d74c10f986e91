"""Fixtures that tests of the judge share."""

from __future__ import annotations

from typing import Any

import pytest

from grader.processes.pool import Processes


@pytest.fixture
def requests(monkeypatch) -> list[dict[str, Any]]:
    """Gets each request to a process."""
    requests: list[dict[str, Any]] = []
    ask = Processes.ask

    def asks(self: Processes, role: str, request: dict[str, Any], *args: Any, **more: Any) -> Any:
        requests.append(request)
        return ask(self, role, request, *args, **more)

    monkeypatch.setattr(Processes, "ask", asks)
    return requests
