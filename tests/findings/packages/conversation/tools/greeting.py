"""Before the chat."""


def prepare(context_variables) -> None:
    """Have nothing to prepare yet."""
