"""The kinds of benchmark: one folder each, registered in `registry`."""
