"""How long tests wait.

SLOWNESS in the environment says how many times slower than a common machine this one is, such as 6 with emulated
processors. It stretches durations that specs name. PATIENCE stretches only the bounds that catch a hang: a generous one
costs nothing unless a test fails.
"""

import os

SLOWNESS = float(os.environ.get("SLOWNESS", "1"))
PATIENCE = float(os.environ.get("PATIENCE", "5")) * SLOWNESS


def pause(looked: float, least: float) -> float:
    """Seconds until the next look, at least so many: where one takes long, looking must not take what is waited for."""
    return max(least, min(5 * looked, 5))
