"""What ends a command without an answer, and the exit codes of all commands."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command says to the shell. NO: the benchmark failed, no class is best, or the second is worse."""

    ANSWER = 0
    NO = 1
    UNUSABLE = 2
    INTERRUPTED = 130


class UserError(Exception):
    """Something the user can do something about: the message is one line and says what."""


class UnknownKindError(UserError):
    """An object is of another version of the API, or of its kind of benchmark: the rest can be used without it."""
