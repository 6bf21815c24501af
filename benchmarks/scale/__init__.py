"""Measures the capacity of the operator on a cluster whose nodes are mostly simulated: `make scale`."""
