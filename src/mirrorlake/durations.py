"""Durations as people write them. Pure."""


def duration(milliseconds: float) -> str:
    """Format a duration in milliseconds: 610 ms, 12.3 s, 3 min 20 s, 5 h 2 min, 3 d 4 h."""
    sign, left = ("-" if milliseconds < 0 else ""), abs(milliseconds)
    if left < 999.5:
        return f"{sign}{left:.0f} ms"
    if left < 59_950:
        return f"{sign}{left / 1_000:.1f} s"
    seconds = round(left / 1_000)
    for size, name, smaller, of_smaller in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{sign}{seconds // size} {name}" + (f" {rest} {of_smaller}" if rest else "")
    raise AssertionError("less than a minute has returned above")
