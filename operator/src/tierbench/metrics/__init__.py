"""Prometheus metrics of results and of the operator. No other package imports prometheus_client."""
