"""The only part that knows kopf: handlers, and the loop behind each benchmark."""
