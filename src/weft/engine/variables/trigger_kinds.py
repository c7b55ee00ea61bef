"""Kinds of triggers that plug-ins add: `{"type": "x:NAME", ...}`."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from pydantic import BaseModel

from weft.engine.events import Event
from weft.engine.state import State
from weft.findings import Json


class Fires(NamedTuple):
    """A trigger fires and sets its variable to a value."""

    value: Json


class TriggerKind(Protocol):
    """One kind: what may be declared for it, and when it fires.

    It must be pure: the same settings, event and state always give the same answer, so that a
    journal is decided the same whenever it is replayed.
    """

    @property
    def settings(self) -> type[BaseModel]:
        """The keys a trigger of this kind has beside its type."""
        ...

    def fires(self, settings: Any, event: Event, state: State) -> Fires | None:  # noqa: ANN401
        """Say what an event sets the variable to; the state is the one before the event.

        It is not asked about what triggers have set. If it raises, nothing is set and the journal
        says why.
        """
        ...


#: By the name after `x:`.
TriggerKinds: TypeAlias = Mapping[str, TriggerKind]
NO_KINDS: Final[TriggerKinds] = {}
