"""Programs that measure tierbench itself: against known peers, at scale, and by simulation."""
