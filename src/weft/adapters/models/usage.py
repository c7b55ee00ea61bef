"""Usage and cost of calls. An unknown price stays unknown and never counts as zero."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from weft.engine.events import Usage
from weft.errors import UsageError
from weft.ports.model import Model, ModelReply, ModelRequest

if TYPE_CHECKING:
    from genai_prices.types import AbstractUsage

_MILLION: Final = 1_000_000

#: Dollars for a million tokens: input, output.
Price: TypeAlias = tuple[float, float]
_EXAMPLE: Final = 'for a million tokens, in and out: prices={"openai:mine": (0.2, 0.8)}'

#: The usage of a reply without a model call: zero, and known.
FREE: Final = Usage(0, 0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices by model, `provider:model` or the model alone; they override the public ones."""

    own: Mapping[str, Price]

    def __post_init__(self) -> None:
        """Refuse invalid prices now: after the first reply it would be too late."""
        if not isinstance(self.own, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"prices are given by model, not as {self.own!r}", hint=_EXAMPLE)
        for name, price in self.own.items():
            if not _is_price(price):
                raise UsageError(
                    f"the price of {name} is two numbers of dollars from 0 on, not {price!r}",
                    hint=_EXAMPLE,
                )

    def cost(self, usage: Usage, *, provider: str | None, names: tuple[str, ...]) -> float | None:
        """Return the cost in dollars, by the first of the names that has a price.

        `provider` is the provider's name in the public price list; None if it is not listed.
        """
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        for name in names:
            if name in self.own:
                given, taken = self.own[name]
                return (usage.input_tokens * given + usage.output_tokens * taken) / _MILLION
        return None if provider is None else _public_cost(usage, provider, names)


def _is_price(price: object) -> bool:
    match price:
        case (int() | float() as given, int() | float() as taken):
            return 0 <= given < math.inf and 0 <= taken < math.inf
        case _:
            return False


def _public_cost(usage: Usage, provider: str, names: tuple[str, ...]) -> float | None:
    try:
        # The list is an extra, and importing it takes as long as importing most of Weft.
        from genai_prices import Usage as Counted  # noqa: PLC0415
        from genai_prices import calc_price  # noqa: PLC0415
    except ImportError:
        return None  # The reply is paid for and must count; its cost is unknown.
    counted: AbstractUsage = Counted(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
    )
    for name in names:
        try:
            return float(calc_price(counted, name, provider_id=provider).total_price)
        except (LookupError, ValueError):  # not on the list, or counts that contradict each other
            continue
    return None


class Priced:
    """Adds the cost to every reply."""

    def __init__(
        self, model: Model, prices: PriceList, *, provider: str | None, names: tuple[str, ...]
    ) -> None:
        self._model = model
        self._prices = prices
        self._provider = provider
        self._names = names

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        reply = await self._model.reply(request, on_text)
        names = (reply.model, *self._names) if reply.model else self._names
        cost = self._prices.cost(reply.usage, provider=self._provider, names=names)
        return reply if cost is None else replace(reply, usage=replace(reply.usage, cost_usd=cost))
