"""A client of the Kubernetes API, informers, events and leader election. Knows nothing of benchmarks."""
