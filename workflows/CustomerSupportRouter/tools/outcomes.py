"""The three ways in which a specialist is done with a request."""


def return_to_router(reason: str) -> str:
    """Give the request back to be routed again."""
    return f"Back to the router: {reason}"


def escalate(reason: str) -> str:
    """Ask for a person to take over."""
    return f"A person is needed: {reason}"


def mark_resolved(summary: str) -> str:
    """Record that the request is settled."""
    return f"Settled: {summary}"
