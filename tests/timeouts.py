"""The timeouts of tests.

SLOWNESS in the environment is how many times slower than a common machine this one is, such as 6 with emulated
processors. It scales durations in specs. TIMEOUT_FACTOR scales only the timeouts that catch a hang: a generous timeout
costs nothing unless a test fails.
"""

import os

SLOWNESS = float(os.environ.get("SLOWNESS", "1"))
TIMEOUT_FACTOR = float(os.environ.get("TIMEOUT_FACTOR", "5")) * SLOWNESS


def pause(poll_seconds: float, least: float) -> float:
    """Returns the seconds until the next poll, at least `least`. A slow poll gets a longer pause."""
    return max(least, min(5 * poll_seconds, 5))
