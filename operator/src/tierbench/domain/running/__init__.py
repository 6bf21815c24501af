"""What a benchmark does while it is Running: a file a verb."""
