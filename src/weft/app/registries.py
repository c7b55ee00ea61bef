"""Models as the settings describe them: how they are asked, and what answers instead."""

from collections.abc import Mapping
from random import Random

from weft.adapters.models.person import Ask, PersonModel
from weft.adapters.models.registry import ModelRegistry
from weft.adapters.models.usage import Price
from weft.app.models import refuse_unknown
from weft.app.settings import call_rules, fallbacks_of
from weft.ports.clock import Clock


def open_registry(
    settings: Mapping[str, str],
    clock: Clock,
    *,
    person: Ask | None = None,
    prices: Mapping[str, Price] | None = None,
) -> tuple[ModelRegistry, Mapping[str, str]]:
    """Return what makes models, and the fallbacks by model; raises UsageError for wrong settings.

    Nothing is asked and no connection is opened.
    """
    registry = ModelRegistry(
        clock=clock,
        random=Random(),  # noqa: S311 - spreads retries, nothing secret
        settings=settings,
        rules=call_rules(settings),
        prices=prices,
        factories={"you": lambda _: PersonModel(person)} if person else {},
    )
    fallbacks = fallbacks_of(settings)
    refuse_unknown(fallbacks, registry)
    return registry, fallbacks
