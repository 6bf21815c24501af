"""The only input from and output to the API server."""
