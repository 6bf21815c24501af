"""The API as a real API server sees it: what it accepts, refuses and shows."""
