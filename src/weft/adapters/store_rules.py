"""What every store keeps to: its times, and the errors with which it refuses batches and mail."""

from typing import Final

from weft.errors import (
    AlreadyAnswered,
    NameTaken,
    RequestNotOpen,
    RunHasEnded,
    RunOwned,
    StoreConflict,
    StoreError,
    UnreadMail,
)

#: Milliseconds without a heartbeat after which an owner is dead.
DEAD_AFTER: Final = 5_000

#: Milliseconds for which the ids of mail are remembered.
REMEMBER: Final = 24 * 3_600_000

#: Milliseconds between two times at which old ids of mail are forgotten.
FORGET_EVERY: Final = 600_000

#: Errors that a value is to blame for, and not the store.
UNFIT: Final = (TypeError, ValueError, OverflowError)

#: What is wrong with a batch that takes mail which its run does not have.
MAIL_NOT_THERE: Final = "mail that a batch takes is not there"


def conflict(run: str, seq: int, expected: int) -> StoreConflict:
    """Return the error for a batch whose run has other events by now."""
    return StoreConflict(
        f"run {run} is at event {seq}, not at {expected}: another process has written; "
        "read it again"
    )


def run_owned(run: str, owner: str) -> RunOwned:
    """Return the error for a batch whose run has another owner."""
    return RunOwned(f"run {run} has another owner: {owner}")


def unread_mail(run: str) -> UnreadMail:
    """Return the error for a batch that must not precede the mail of its run."""
    return UnreadMail(f"run {run} has unread mail: take it and decide again")


def name_taken(name: str) -> NameTaken:
    """Return the error for the first batch of a run whose name another run has."""
    return NameTaken(f"another open run has the name {name}")


def run_has_ended(run: str) -> RunHasEnded:
    """Return the error for mail to a run that is not open."""
    return RunHasEnded(f"run {run} has ended or never was")


def already_answered(run: str, request: str) -> AlreadyAnswered:
    """Return the error for a second answer to a request."""
    return AlreadyAnswered(f"request {request} of run {run} has an answer already")


def request_not_open(run: str, request: str) -> RequestNotOpen:
    """Return the error for an answer to a request that is not open."""
    return RequestNotOpen(f"request {request} of run {run} is not open")


def unfit_batch(run: str, error: object) -> StoreError:
    """Return the error for a batch with a value that no store can hold."""
    return StoreError(f"events of run {run} cannot be stored: {error}")


def unfit_mail(to: str, error: object) -> StoreError:
    """Return the error for mail with a value that no store can hold."""
    return StoreError(f"mail for {to} cannot be stored: {error}")
