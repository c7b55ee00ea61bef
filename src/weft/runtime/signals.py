"""Signals: the only way back into a run."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.findings import Json


@dataclass(frozen=True, slots=True)
class UserMessage:
    """The user says something, in answer to the run's waiting for it."""

    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A person answers a question."""

    request: str
    value: Json


@dataclass(frozen=True, slots=True)
class Stop:
    """The run is to end: now, or after the turn under way."""

    mode: Literal["now", "after_turn"] = "now"


Signal: TypeAlias = UserMessage | Answer | Stop
