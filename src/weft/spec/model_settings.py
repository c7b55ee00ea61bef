"""Model settings: how a language model is asked, beside what it is sent."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from weft.spec.part import JsonMap, Part, Words

#: Says that the seed is to be one number for all of a chat.
CACHE_SEED: Final = "cache_seed"


def _seed(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return "number"
    return "word" if value == CACHE_SEED else None


#: Told apart by their form, so that what is neither is refused once.
Seed: TypeAlias = Annotated[
    Annotated[int, Tag("number")] | Annotated[Literal["cache_seed"], Tag("word")],
    Discriminator(
        _seed,
        custom_error_type="seed",
        custom_error_message='a seed is a whole number, or "cache_seed"',
    ),
]

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
    seed: Seed | None = Field(
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
