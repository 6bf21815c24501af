"""Prometheus metrics: computed at scrape time from the results that exist. The only import of prometheus_client."""
