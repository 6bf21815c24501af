"""Compares tierbench with known peers, side by side in one run: python3 -m benchmarks.peers."""
