"""Decides what the operator does next, from what it observes. This package does no input or output."""
