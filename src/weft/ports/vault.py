"""The vault: answers to secret fields, on their way from the person to the tool that asked.

No event has them. They are encrypted wherever they leave memory.
"""

from typing import NamedTuple, Protocol

from weft.findings import Json
from weft.ports.store import RunKey


class SecretAnswer(NamedTuple):
    """An unmasked answer, and the values of its secret fields."""

    value: Json
    secrets: tuple[Json, ...]

    def __repr__(self) -> str:
        """Hide the values: a log or a traceback may print this."""
        return "SecretAnswer(...)"


class Vault(Protocol):
    """Holds secret answers until the call that asked is over, or its run has ended."""

    @property
    def is_local(self) -> bool:
        """Whether only this process can read what it holds."""
        ...

    async def put(self, run: RunKey, request: str, answer: SecretAnswer) -> None:
        """Store the answer to a request, or replace it."""
        ...

    async def get(self, run: RunKey, prefix: str) -> dict[str, SecretAnswer]:
        """Return the answers to all requests whose ids begin with `prefix`, by request."""
        ...

    async def drop(self, run: RunKey, prefix: str = "") -> None:
        """Delete the answers to all requests whose ids begin with `prefix`."""
        ...
