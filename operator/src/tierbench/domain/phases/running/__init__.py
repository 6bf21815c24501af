"""Running: servers come up, the preflight measures the network, and then clients measure block after block."""
