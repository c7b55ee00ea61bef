"""A command that failed: its exit code, and why."""

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
    """The exit code of a command."""

    DONE = 0
    #: A package has errors, a run failed, or a replay differs from the recorded run.
    FAILED = 1
    #: The command line could not be understood.
    USAGE = 2
    #: A problem with this machine or its settings; `weft doctor` finds it.
    SETUP = 3
    #: A run waits for a person, and stdin is not a terminal.
    WAITING = 4
    NOT_FOUND = 6
    #: The target already exists, or was changed by someone else.
    CONFLICT = 7
    #: A bug in Weft.
    BUG = 70
    #: Stopped with Ctrl-C.
    INTERRUPTED = 130
    #: Stopped by SIGTERM.
    TERMINATED = 143


def code_of(exit_code: Exit) -> str:
    """Return the code of the message that belongs to an exit code; `weft explain` knows it."""
    return f"CLI{exit_code:03}"


@dataclass(frozen=True)
class Failure:
    """Why a command failed."""

    exit: Exit
    message: str
    cause: tuple[str, ...] = ()
    hint: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    #: The run that stopped, if there is one.
    run: str = ""
    #: The command that says more; by default the one that explains the code.
    more: str = ""
    #: Whether events were printed before, one JSON document per line.
    after_events: bool = False

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
    """Return the failure of a command line that cannot be understood."""
    return CommandFailed(Failure(Exit.USAGE, message, hint=hint))


def not_found(message: str, *hint: str) -> CommandFailed:
    """Return the failure of a command that names something that does not exist."""
    return CommandFailed(Failure(Exit.NOT_FOUND, message, hint=hint))


def conflict(message: str, *hint: str) -> CommandFailed:
    """Return the failure of a command whose target already exists."""
    return CommandFailed(Failure(Exit.CONFLICT, message, hint=hint))


def setup(message: str, *hint: str, cause: tuple[str, ...] = ()) -> CommandFailed:
    """Return the failure of a command that this machine or its settings prevent."""
    return CommandFailed(Failure(Exit.SETUP, message, cause=cause, hint=hint))


def did_you_mean(near: str | None) -> list[str]:
    """Return the hint that names what was probably meant; empty if that is unknown."""
    return [f"did you mean {near}?"] if near else []


def failure_of(error: WeftError | OSError) -> Failure:
    """Return the failure that an exception of a lower layer means for the command."""
    match error:
        case CommandFailed():
            return error.failure
        case SetupError():
            return Failure(Exit.SETUP, str(error), hint=(error.hint,) if error.hint else ())
        case UsageError():
            return Failure(Exit.USAGE, str(error), hint=(error.hint,) if error.hint else ())
        case RetrievalError(hint=str(hint)):
            # The caller cannot change what may work at the next attempt.
            outcome = Exit.SETUP if error.retryable else Exit.USAGE
            return Failure(outcome, str(error), hint=(hint,))
        case CheckFailed() if error.findings:
            return Failure(Exit.FAILED, error.message, findings=error.findings)
        case DeclarationError() if error.findings:
            return Failure(Exit.FAILED, str(error), findings=error.findings)
        case OSError():
            return Failure(Exit.SETUP, os_error_text(error), hint=(remedy(error) or _DOCTOR,))
        case _:
            cause = error.__cause__
            hint = remedy(cause) if isinstance(cause, OSError) else ""
            return Failure(Exit.SETUP, str(error), hint=(hint or _DOCTOR,))


def os_error_text(error: OSError) -> str:
    """Return what the operating system refused."""
    reason = (error.strerror or type(error).__name__).lower()
    return f"cannot use {error.filename}: {reason}" if error.filename else reason


def remedy(error: OSError) -> str:
    """Return what to do about an error of the operating system; empty if that is unknown."""
    if isinstance(error, PermissionError) and error.filename:
        path = Path(str(error.filename))
        return f"check the permissions: ls -ld {quote(str(path.parent))} {quote(str(path))}"
    return _REMEDIES.get(error.errno or 0, "")


_DOCTOR: Final = "check the setup: weft doctor"

_REMEDIES: Final = {
    errno.ENOENT: "check the path: a part of it does not exist",
    errno.ENOTDIR: "check the path: a part of it is a file, not a folder",
    errno.EEXIST: "check the path: it already exists",
    errno.EISDIR: "check the path: it is a folder, not a file",
    errno.ENOSPC: "free some disk space",
    errno.EROFS: "choose a path on a writable file system",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "check the symbolic links in the path: they form a loop",
}
