"""What to do next, decided from what is observed: pure, no input or output."""
