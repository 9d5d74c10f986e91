"""Process isolation: a warm zygote, a fork per grade, resource limits, framed messages."""

from grader.sandbox.child_client import Child as Child
from grader.sandbox.client import Sandbox as Sandbox
from grader.sandbox.confinement import Isolation as Isolation
from grader.sandbox.confinement import Measure as Measure
from grader.sandbox.errors import Cancelled as Cancelled
from grader.sandbox.errors import ChildError as ChildError
from grader.sandbox.errors import NotStarted as NotStarted
from grader.sandbox.errors import SandboxBroken as SandboxBroken
from grader.sandbox.handlers import Handlers as Handlers
from grader.sandbox.limits import ResourceLimits as ResourceLimits
from grader.sandbox.limits import Role as Role
