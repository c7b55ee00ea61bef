"""Where a case goes: up one tier, or to its end."""


def hand_to_second_line(notes: str) -> str:
    """Hand the case to the second line."""
    return f"Handed to the second line: {notes}"


def hand_to_expert(notes: str) -> str:
    """Hand the case to the expert."""
    return f"Handed to the expert: {notes}"


def close_case(solution: str) -> str:
    """Record what solved the problem."""
    return f"Solved: {solution}"
