"""How long tests wait: PATIENCE in the environment says how many times as long as on a common machine."""

import os

PATIENCE = float(os.environ.get("PATIENCE", "1"))


def pause(looked: float, least: float) -> float:
    """Seconds until the next look, at least so many: where one takes long, looking must not take what is waited for."""
    return max(least, min(5 * looked, 5))
