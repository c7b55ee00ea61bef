"""Hides account numbers."""

import re


def mask_iban(sender: str, message: str, recipient: str, silent: bool) -> str:
    """Return the message without account numbers."""
    return re.sub(r"\b[A-Z]{2}\d{2}[A-Z0-9]{11,30}\b", "(account number)", message)
