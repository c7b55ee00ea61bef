"""What the leads say to finished work."""


def approve_facts(comment: str) -> str:
    """Accept the facts of the research team."""
    return f"Facts approved: {comment}"


def approve_draft(comment: str) -> str:
    """Accept the draft of the writing team."""
    return f"Draft approved: {comment}"
