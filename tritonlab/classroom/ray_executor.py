"""Grades on the nodes of a Ray cluster: one actor a core, each with a warm sandbox."""

import collections
import contextlib
import importlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from tritonlab.classroom.grade_worker import GradeOutcome, GradeWorker, Job
from tritonlab.course import course
from tritonlab.course.course import Roots
from tritonlab.errors import CannotGrade, TritonlabError

_TOKEN = ("If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to that of the "
          "cluster; if it has ended, type `ray stop --force`.")

class RayExecutor:
    """Actors of a Ray cluster; one that dies costs the job in progress and is replaced."""

    def __init__(self, ray: Any, roots: Roots, jobs: int | None) -> None:
        self.size = jobs or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._ray = ray
        # Each node has its own installation of the shipped course.
        self._roots = None if roots == course.shipped_roots() else roots
        self._actor = ray.remote(num_cpus=1, max_restarts=0)(RayWorker)
        self._lock = threading.Lock()
        self._idle: collections.deque[Any] = collections.deque()
        self._waiting: collections.deque[tuple[Job | None, Future[GradeOutcome]]] = \
            collections.deque()
        self._starting: set[Any] = set()  # keeps actors alive until they are ready
        for _ in range(self.size):
            self._start()

    def submit(self, job: Job | None) -> "Future[GradeOutcome]":
        """Hands a job to the first idle actor.

        If its actor dies, or its node, the future raises BrokenProcessPool.
        """
        result: Future[GradeOutcome] = Future()
        with self._lock:
            self._waiting.append((job, result))
        self._dispatch()
        return result

    def _start(self) -> None:
        """Starts an actor; it gets jobs once it runs, which needs a node with a free core."""
        actor = self._actor.remote(self._roots)
        self._starting.add(actor)

        def ready(reply: "Future[None]") -> None:
            self._starting.discard(actor)
            if reply.exception() is None:
                self._release(actor)

        actor.ready.remote().future().add_done_callback(ready)

    def _release(self, actor: Any) -> None:
        with self._lock:
            self._idle.append(actor)
        self._dispatch()

    def _dispatch(self) -> None:
        with self._lock:
            if not (self._idle and self._waiting):
                return
            actor, (job, result) = self._idle.popleft(), self._waiting.popleft()

        def finish(reply: "Future[GradeOutcome]") -> None:
            error = reply.exception()
            if isinstance(error, self._ray.exceptions.RayActorError):
                self._start()
                result.set_exception(BrokenProcessPool(str(error)))
                return
            self._release(actor)
            if error is None:
                result.set_result(reply.result())
            else:
                result.set_exception(_cause(error))

        actor.grade.remote(job).future().add_done_callback(finish)


class RayWorker:
    """An actor with a warm sandbox."""

    def __init__(self, roots: Roots | None) -> None:
        self._worker = GradeWorker(course.load(roots or course.shipped_roots()))

    def ready(self) -> None:
        """Returns once the actor runs."""

    def grade(self, job: Job | None) -> GradeOutcome:
        return self._worker(job)


@contextlib.contextmanager
def start(roots: Roots, jobs: int | None) -> Iterator[RayExecutor]:
    """Connects to the Ray cluster of this machine, or starts one on its cores.

    Raises:
        CannotGrade: Ray cannot be started, or the cluster refuses this process.
        TritonlabError: Ray is not installed.
    """
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise TritonlabError("Ray is not installed.", "Type `pip install 'tritonlab[ray]'`, or "
                             "leave --executor ray out.") from error
    try:
        try:
            ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
        except ConnectionError as error:
            if "Could not find" not in str(error):  # a cluster runs, but refuses this process
                raise
            ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    except (ConnectionError, ray.exceptions.AuthenticationError) as error:
        cause = str(error).partition(". ")[0].rstrip(".")
        raise CannotGrade(f"The Ray cluster cannot be used: {cause}.", _TOKEN) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise CannotGrade(f"Ray does not start: {error}.") from error
    try:
        yield RayExecutor(ray, roots, jobs)
    finally:
        ray.shutdown()


def _cause(error: BaseException) -> BaseException:
    """Returns what was raised in the actor."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, BaseException) else error
