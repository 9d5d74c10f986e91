"""Names of the code that children run: handlers, and what the zygote imports and warms."""

from collections.abc import Iterable
from pkgutil import resolve_name

import msgspec

from grader.sandbox.limits import Role


class Handlers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names the code of a sandbox's children, so that the sandbox imports none of it.

    A name is ``module:attribute``, of what is called without arguments, or ``module``, which is
    imported. They travel to the zygote as an argument of its command.

    Args:
        roles: the class of each role's handler, whose ``handle`` answers requests.
        first: called in order before the zygote forks; an error ends it.
        warm: called after those, and again by each child that is forked ahead.
        idle: called one by one while the zygote waits. Errors are dropped: a child that needs the
            same meets them again.
        expected: called at ``Sandbox.expect(key)``. Errors are dropped.
    """

    roles: dict[Role, str]
    first: tuple[str, ...] = ()
    warm: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    expected: dict[str, tuple[str, ...]] = {}


def call(names: Iterable[str]) -> None:
    """Imports each module, and calls its named attribute if there is one."""
    for name in names:
        value = resolve_name(name)
        if ":" in name:
            value()
