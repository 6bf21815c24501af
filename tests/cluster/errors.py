"""The one error of this package: its message says what to do next."""


class ClusterError(Exception):
    """Something a person has to change: the message says what."""
