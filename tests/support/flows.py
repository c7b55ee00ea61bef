"""A state and steps for tests of flows: importable, so that they can be saved."""

from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from weft.flow import Append, Merge


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


class Document(BaseModel):
    """What is written."""

    summary: str = Field(default="", description="In a line.")
    score: int = 0


class Draft(BaseModel):
    """What the steps share."""

    topic: str
    kind: Literal["bill", "offer"] = "bill"
    mood: Mood = Mood.GOOD
    document: Document | None = None
    notes: Annotated[list[str], Append] = Field(default_factory=list)
    marks: Annotated[dict[str, int], Merge] = {}
    total: float = 0
    paid: bool = False
    decision: str = ""


class Verdict(BaseModel):
    document: Document


def write(state: Draft) -> dict[str, Any]:
    return {"topic": state.topic}


async def check(state: Draft, context: Any) -> None: ...


def undo(state: Draft, context: Any) -> None: ...


def look_up(word: str) -> str:
    """Look a word up."""
    return word


class Publish:
    def run(self, state: Draft) -> None: ...


class Count:
    def __init__(self, by: int = 1) -> None:
        self.by = by

    def __call__(self, state: Draft) -> dict[str, Any]:
        return {"total": state.total + self.by}


class Critic:
    """Judges drafts.

    It is strict.
    """

    output_type = Verdict
    model = "sample"
    tools = (look_up,)

    def system_prompt(self) -> str:
        return "You judge."

    def user_prompt(self, state: Draft) -> str:
        return state.topic


class Gather:
    def __init__(self, most: int = 3) -> None:
        self.most = most

    async def assemble(self, state: Draft) -> str:
        return state.topic


class Letter(BaseModel):
    text: str = ""
    tries: int = 0
