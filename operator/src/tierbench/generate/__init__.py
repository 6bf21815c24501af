"""Generates files from the models of the API: CRDs, parts of the chart, the reference, the client's contract."""
