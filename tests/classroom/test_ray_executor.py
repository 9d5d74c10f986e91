"""How a run on Ray begins: whether a cluster is there, and whether it admits this process."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tritonlab.classroom import ray_executor
from tritonlab.course import course
from tritonlab.errors import CannotGrade, TritonlabError


class AuthenticationError(Exception):
    """As Ray's, which is no ConnectionError."""


@pytest.fixture
def ray(monkeypatch):
    """A stand-in for Ray whose connections end with the errors given; the real one is tried by
    `python -m tests.fidelity.class_kills --ray`."""
    def stand_in(*errors: Exception | None) -> list[dict[str, object]]:
        calls: list[dict[str, object]] = []
        ends = iter(errors)

        def init(**options: object) -> None:
            calls.append(options)
            if error := next(ends):
                raise error

        monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(
            init=init, shutdown=lambda: None, cluster_resources=lambda: {"CPU": 0},
            exceptions=SimpleNamespace(AuthenticationError=AuthenticationError)))
        monkeypatch.setattr(ray_executor, "RayExecutor", lambda *arguments: arguments)
        return calls

    return stand_in


def begin() -> None:
    with ray_executor.start(course.shipped_roots(), None):
        pass


def test_without_a_cluster_one_is_started_here(ray):
    calls = ray(ConnectionError("Could not find any running Ray instance. Please specify …"), None)

    begin()

    assert [call.get("address") for call in calls] == ["auto", None]


@pytest.mark.parametrize("error", [
    ConnectionError("Failed to connect to Ray cluster at 10.0.0.2:6379"),
    AuthenticationError("Token authentication is enabled but no token was found. Ensure that …"),
])
def test_a_cluster_that_refuses_is_not_replaced_by_this_machine(ray, error):
    calls = ray(error)

    with pytest.raises(CannotGrade, match="RAY_AUTH_TOKEN") as refused:
        begin()

    assert len(calls) == 1
    assert str(error).partition(". ")[0] in refused.value.message


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(TritonlabError, match=r"tritonlab\[ray\]"):
        begin()
