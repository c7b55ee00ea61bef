"""Small matters of English."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 file, 2 files."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
