"""What the exit code of a command means. These numbers are a promise to scripts."""

from enum import IntEnum


class Exit(IntEnum):
    """The outcome of a command, as the shell sees it."""

    DONE = 0
    #: The thing asked about failed: a package has findings, a run failed, a replay differs.
    FAILED = 1
    #: The command was not given as it can be understood.
    USAGE = 2
    #: Something about this machine is in the way; `weft doctor` can tell what.
    SETUP = 3
    #: A run waits for a person, and nobody is there to be asked.
    WAITING = 4
    NOT_FOUND = 6
    #: What is to be made is already there, or is not what it was.
    CONFLICT = 7
    #: An error in Weft itself.
    BUG = 70
    #: Stopped with Ctrl-C.
    INTERRUPTED = 130


def code_of(exit_code: Exit) -> str:
    """Return the code of the message that goes with an exit code; `weft explain` knows it."""
    return f"CLI{exit_code:03}"
