"""The operator: what is watched, and the loop behind each benchmark."""

import gc

# Allocations between two garbage collections, which visit all objects: imports, which come next, make many, and caches
# hold many. Python collects more often by default.
gc.set_threshold(10_000, 20, 20)
