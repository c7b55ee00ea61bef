"""Model settings: how a language model is asked, beside what it is sent."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from weft.spec.part import JsonMap, Part, Words

#: Says that the seed is to be one number for all of a chat.
CACHE_SEED: Final = "cache_seed"

#: What a call consists of. Another value for it would be another call than the one recorded.
RESERVED: Final = frozenset(
    {"model", "messages", "tools", "tool_choice", "response_format", "stream", "stream_options"}
)


def _beside_the_call(extra: JsonMap) -> JsonMap:
    taken = sorted(RESERVED.intersection(extra))
    if taken:
        raise PydanticCustomError(
            "reserved_keys",
            "extra_body cannot hold {keys}, which Weft sends itself: take it out",
            {"keys": ", ".join(taken)},
        )
    return extra


class ModelSettings(Part):
    """What is sent with every call; null leaves it to the provider."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    seed: int | Literal["cache_seed"] | None = Field(
        default=None,
        description="cache_seed: a number that follows from app, workflow and chat, the same when "
        "a run is resumed.",
    )
    stop: Annotated[tuple[Words, ...], Field(max_length=16)] | None = Field(
        default=None, description="A reply ends where one of these texts would begin."
    )
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    extra_body: Annotated[JsonMap, AfterValidator(_beside_the_call)] | None = Field(
        default=None,
        description="Keys that are sent as they are, for what a provider has beside; they win "
        "over the settings above.",
    )
