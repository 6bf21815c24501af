"""Prometheus metrics: what results say, and how the operator is doing. The only import of prometheus_client."""
