"""From what clients print to results: pure."""
