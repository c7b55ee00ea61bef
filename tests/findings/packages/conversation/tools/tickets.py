"""Tickets."""


def save_ticket(title: str, body: str) -> str:
    """Save a ticket."""
    return title + body
