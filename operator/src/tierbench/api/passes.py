"""Passes over servers that cannot be up at once: which trials each of them measures."""


def shares(trials: int, passes: int) -> tuple[range, ...]:
    """The numbers of the trials of each pass, one after the other; none has more than the first."""
    bounds = [-(-trials * number // passes) + 1 for number in range(passes + 1)]
    return tuple(map(range, bounds, bounds[1:]))
