"""A command that cannot be carried out: its exit code, and why."""

import errno
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from shlex import quote
from typing import Final

from weft.errors import (
    CheckFailed,
    DeclarationError,
    RetrievalError,
    SetupError,
    UsageError,
    WeftError,
)
from weft.findings import Finding


class Exit(IntEnum):
    """The outcome of a command, as the shell sees it."""

    DONE = 0
    #: The thing asked about failed: a package has findings, a run failed, a replay differs.
    FAILED = 1
    #: The command was not given as it can be understood.
    USAGE = 2
    #: Something about this machine is in the way; `weft doctor` can tell what.
    SETUP = 3
    #: A run waits for a person, and there is none to ask.
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


@dataclass(frozen=True)
class Failure:
    """Why a command ends without having done what was asked."""

    exit: Exit
    message: str
    cause: tuple[str, ...] = ()
    hint: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    #: The run that stopped, where it is one.
    run: str = ""
    #: The command that says more; where none is given, the one that explains the code.
    more: str = ""

    @property
    def code(self) -> str:
        """The code of the message."""
        return code_of(self.exit)


class CommandFailed(WeftError):
    """Ends a command; `failure` says why and with which exit code."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def usage(message: str, *hint: str) -> CommandFailed:
    """Refuse a request that was not made as it can be understood."""
    return CommandFailed(Failure(Exit.USAGE, message, hint=hint))


def not_found(message: str, *hint: str) -> CommandFailed:
    """Say that what was named is not there."""
    return CommandFailed(Failure(Exit.NOT_FOUND, message, hint=hint))


def conflict(message: str, *hint: str) -> CommandFailed:
    """Say that something else is already there."""
    return CommandFailed(Failure(Exit.CONFLICT, message, hint=hint))


def setup(message: str, *hint: str, cause: tuple[str, ...] = ()) -> CommandFailed:
    """Say that something about this machine is in the way."""
    return CommandFailed(Failure(Exit.SETUP, message, cause=cause, hint=hint))


def failure_of(error: WeftError | OSError) -> Failure:
    """Return what an exception of the layers below means for the command."""
    match error:
        case CommandFailed():
            return error.failure
        case SetupError():
            return Failure(Exit.SETUP, str(error), hint=(error.hint,) if error.hint else ())
        case UsageError():
            return Failure(Exit.USAGE, str(error), hint=(error.hint,) if error.hint else ())
        case RetrievalError(hint=str(hint)):
            # What may be better next time is not for the one who asks to change.
            outcome = Exit.SETUP if error.retryable else Exit.USAGE
            return Failure(outcome, str(error), hint=(hint,))
        case CheckFailed() if error.findings:
            return Failure(Exit.FAILED, error.message, findings=error.findings)
        case DeclarationError() if error.findings:
            return Failure(Exit.FAILED, str(error), findings=error.findings)
        case OSError():
            return Failure(Exit.SETUP, refusal(error), hint=(remedy(error) or _LAST_RESORT,))
        case _:
            behind = error.__cause__
            hint = remedy(behind) if isinstance(behind, OSError) else ""
            return Failure(Exit.SETUP, str(error), hint=(hint or _LAST_RESORT,))


def refusal(error: OSError) -> str:
    """Say what the operating system refused."""
    reason = (error.strerror or type(error).__name__).lower()
    return f"{error.filename} cannot be used: {reason}" if error.filename else reason


def remedy(error: OSError) -> str:
    """Say what to do about what the operating system refused, or nothing if that is not known."""
    if isinstance(error, PermissionError) and error.filename:
        path = Path(str(error.filename))
        return f"see who may do that: ls -ld {quote(str(path.parent))} {quote(str(path))}"
    return _REMEDIES.get(error.errno or 0, "")


_LAST_RESORT: Final = "look at the setup: weft doctor"

_REMEDIES: Final = {
    errno.ENOENT: "look at the spelling of the path; something in it is not there",
    errno.ENOTDIR: "look at the path; a part of it is a file and no folder",
    errno.EEXIST: "look at the path; something else is already there",
    errno.EISDIR: "look at the path; it leads to a folder and no file",
    errno.ENOSPC: "make room on the disk",
    errno.EROFS: "choose a place that can be written to",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "look at the links in the path; they lead in a circle",
}
