"""Everything that is generated from the API's models: CRDs, chart parts, reference and the client's contract."""
