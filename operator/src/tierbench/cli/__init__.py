"""kubectl-tierbench: one file a command."""
