"""Tests of the Helm chart: values, rendered objects, and releases on an API server."""
