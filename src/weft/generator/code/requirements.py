"""The libraries that the code of a package needs."""

from collections.abc import Iterable


def requirements_text(requirements: Iterable[str]) -> str:
    """Return the content of `requirements.txt`: each library once, in order of the alphabet."""
    names = sorted({it.strip() for it in requirements} - {""}, key=str.lower)
    return "".join(f"{it}\n" for it in names)
