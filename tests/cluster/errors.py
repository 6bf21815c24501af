"""The error of this package. Its message says what to do next."""


class ClusterError(Exception):
    """The user has to change something. The message names it."""
