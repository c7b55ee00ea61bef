"""Says hello in several languages."""

from typing import Final, Literal

_HELLO: Final = {"English": "Hello", "French": "Bonjour", "Spanish": "Hola"}


def greet(name: str, language: Literal["English", "French", "Spanish"]) -> str:
    """Return a greeting for one person."""
    return f"{_HELLO[language]}, {name.strip()}!"
