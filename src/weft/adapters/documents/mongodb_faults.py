"""What MongoDB says when something is wrong, as what the port raises; never with a password."""

import re
from typing import Final

from pymongo import errors

from weft.errors import StoreConflict, StoreError, UsageError

#: Codes of what is wrong with a document or a path, and of positions that cannot be gone on from.
_UNFIT: Final = frozenset({2, 9, 28, 40, 52, 54, 55, 57, 66, 260, 10334, 17280, 17419})
_REFUSED: Final = frozenset({13, 18, 8000})
_FORGOTTEN: Final = frozenset({280, 286})

#: Codes of a server that is about to stop, to begin, or to hand over.
_PASSING: Final = frozenset({6, 7, 50, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436})


def fault_of(
    error: errors.PyMongoError, address: str, *, writing: bool = False
) -> StoreError | UsageError:
    """Say what is wrong, where, and what to do."""
    said = re.split(r", (?:full error|Timeout): | \(configured timeouts", str(error))[0]
    where = f"documents {address}: "
    code = error.code if isinstance(error, errors.OperationFailure) else None
    if isinstance(error, errors.DuplicateKeyError):
        return StoreConflict(f"{where}a document with this key is there already; name another")
    if code in _FORGOTTEN:
        return StoreError(
            f"{where}the changes after this position are gone; read the collection anew and "
            "watch from now on"
        )
    if code in _REFUSED:
        return StoreError(f"{where}user, password or rights are refused ({said})")
    if code in _UNFIT or isinstance(error, errors.DocumentTooLarge):
        return UsageError(f"MongoDB refuses this: {said}")
    lost = isinstance(error, errors.ConnectionFailure)
    passing = lost or code in _PASSING or error.has_error_label("RetryableWriteError")
    return StoreError(f"{where}{said}", retryable=passing, uncertain=lost and writing)


def shown_address(url: str) -> str:
    """Return an address as it may be shown: without user, password and options."""
    kind, _, rest = url.partition("://")
    return f"{kind}://{re.split('[/?]', rest.rpartition('@')[2])[0]}"
