"""Tests of the API against a real API server: what it accepts, rejects and shows."""
