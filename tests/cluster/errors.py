"""The error of this package. Its message says what to do next."""


class ClusterError(Exception):
    """A person has to change something, which the message names."""
