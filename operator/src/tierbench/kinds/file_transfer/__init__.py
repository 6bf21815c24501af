"""Benchmarks of file transfers."""
