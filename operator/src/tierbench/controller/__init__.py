"""The operator: what is watched, and the loop behind each benchmark."""
