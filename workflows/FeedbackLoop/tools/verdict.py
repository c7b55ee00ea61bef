"""The two verdicts of a review."""


def request_changes(comments: list[str]) -> str:
    """Send the draft back with what must be changed, as a numbered list."""
    return "\n".join(f"{number}. {comment}" for number, comment in enumerate(comments, 1))


def accept_draft(praise: str) -> str:
    """Accept the draft as it is."""
    return f"Accepted: {praise}"
