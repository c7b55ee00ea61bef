"""What becomes of variables, printed as it happens, where an operator asks for it."""

import logging
from collections.abc import Mapping
from typing import Final

from weft.app.installation import TRUTHY

_log: Final = logging.getLogger("weft.context")


class _Lines(logging.StreamHandler):  # pyright: ignore[reportMissingTypeArgument]
    """Prints to the error stream."""


def log_context(settings: Mapping[str, str]) -> None:
    """Print every change of a variable from now on, or not any more, as the settings say."""
    for handler in [handler for handler in _log.handlers if isinstance(handler, _Lines)]:
        _log.removeHandler(handler)
        _log.setLevel(logging.NOTSET)
        _log.propagate = True
    if settings.get("CONTEXT_VERBOSE_DEBUG", "").strip().lower() in TRUTHY:
        lines = _Lines()
        lines.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        _log.addHandler(lines)
        _log.setLevel(logging.DEBUG)
        _log.propagate = False  # Else another handler would print each line again.
