"""Quantities as text: three digits and a unit."""

from grader.recording.launch_stats import Interval

_DECIMAL = (("T", 1e12), ("G", 1e9), ("M", 1e6))


def bytes_(number: float) -> str:
    """Such as ``33.6 MB``, a MB being 1e6 bytes."""
    for prefix, size in (*_DECIMAL, ("K", 1e3)):
        if number >= 0.9995 * size:  # which reads as 1.00
            return f"{three(number / size)} {prefix}B"
    return f"{number:.0f} B"


def interval(between: Interval) -> str:
    """Bytes, as one number where both ends read alike."""
    return " to ".join(dict.fromkeys((bytes_(between.low), bytes_(between.high))))


def seconds(number: float) -> str:
    """Such as ``22.3 µs``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if number >= size:
            return f"{three(number / size)} {unit}"
    return f"{number * 1e9:.0f} ns"


def rate(number: float, unit: str) -> str:
    """Such as ``2.9 TB/s`` where the unit is ``B/s``."""
    size, name = scale(number, unit)
    return f"{number:.0f} {unit}" if size == 1 else f"{three(number / size)} {name}"


def scale(number: float, unit: str) -> tuple[float, str]:
    """The divisor and the prefixed unit for an axis that ends at ``number``."""
    return next(((size, f"{prefix}{unit}") for prefix, size in _DECIMAL if number >= size),
                (1.0, unit))


def count(number: int) -> str:
    """A count: ``12,345``, but ``67.1 M``."""
    if number < 100_000:
        return f"{number:,}"
    prefix, size = ("M", 1e6) if number >= 999_500 else ("K", 1e3)
    return f"{three(number / size)} {prefix}"


def three(number: float) -> str:
    """Three digits, without an exponent."""
    if number >= 99.95:
        return f"{number:,.0f}"
    return f"{number:.2f}" if number < 9.995 else f"{number:.1f}"


def share(number: float) -> str:
    """A percentage; only exact 0 and 1 become 0 % and 100 %."""
    percent = min(99.9, max(0.1, 100 * number)) if 0 < number < 1 else 100 * number
    return f"{percent:.3g} %" if percent < 100 else f"{percent:,.0f} %"


def listed(*facts: str | int | None, by: str = ", ") -> str:
    """Joins the facts that hold: all but empty ones, None, False and 0."""
    return by.join(str(fact) for fact in facts if fact)
