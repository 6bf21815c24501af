"""Code that engines for brokers in Python share: their side of docs/reference/engine-protocol.md."""
