"""Plans how to undo a change."""


def plan_rollback(steps_taken: list[str]) -> list[str]:
    """Return the steps that undo a change: the last one first, numbered."""
    return [f"{number}. Undo: {step}" for number, step in enumerate(reversed(steps_taken), 1)]
