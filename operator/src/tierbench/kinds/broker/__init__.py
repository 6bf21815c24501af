"""Benchmarks of brokers."""
