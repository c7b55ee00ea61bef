"""Services: what other systems answer over HTTP."""

from dataclasses import dataclass
from typing import Literal, Protocol

from weft.findings import Json
from weft.ports.scope import Scope


@dataclass(frozen=True, slots=True)
class ServiceLogin:
    """How a service knows us; `secret` is the secret itself and is never printed."""

    kind: Literal["bearer", "basic", "header"]
    secret: str
    header: str = "Authorization"

    def __repr__(self) -> str:
        return f"ServiceLogin({self.kind!r})"


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """One question to a service, and how much patience there is for the answer."""

    service: str
    operation: str
    url: str
    login: ServiceLogin | None = None
    #: Seconds one attempt may take, and how many bytes an answer may have.
    timeout: float = 10.0
    max_bytes: int = 1_000_000
    attempts: int = 1
    #: Seconds before the second attempt; twice as long before each further one.
    backoff: float = 1.0
    #: Seconds an answer is given again to the same question of the same tenant; 0 for never.
    cache: float = 0.0


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """What came back, and whether it was kept from before."""

    value: Json
    cached: bool = False
    attempts: int = 1


class Services(Protocol):
    """Asks services."""

    async def get(self, scope: Scope, request: ServiceRequest) -> ServiceAnswer:
        """Return the JSON a service answers with. Raises PortError, which names no secret."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...
