"""The two ways in which an answering agent is done with a request."""


def change_topic(reason: str) -> str:
    """Give the request back to be routed again."""
    return f"Given back: {reason}"


def close_request(summary: str) -> str:
    """End the conversation."""
    return f"Closed: {summary}"
