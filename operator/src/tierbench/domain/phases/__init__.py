"""The phases of a benchmark, a file each; what it does while it is Running, a file a verb."""
