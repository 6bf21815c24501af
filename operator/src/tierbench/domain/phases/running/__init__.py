"""Running: the preflight, then of each case serve, start, follow, fold, conclude."""
