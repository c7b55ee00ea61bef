"""What providers do with the items of other providers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from weft.spec.providers import (
    CompositeProvider,
    RedactingProvider,
    SummarisingProvider,
    with_inner,
)
from weft.spec.templates import Reference, parse_template

#: How long a provider may take, in seconds.
PROVIDER_SECONDS: Final = 10.0


def redact_inside(redacting: RedactingProvider) -> Callable[..., Any] | None:
    """Return a provider that redacts before summarising, because a summary has no keys."""
    inner: object = redacting.provider
    if not isinstance(inner, CompositeProvider | SummarisingProvider):
        return None
    made = with_inner(inner, lambda part: redacting.model_copy(update={"provider": part}))
    return cast("Callable[..., Any]", made)


def redact(value: Any, rules: RedactingProvider, changed: set[str]) -> Any:  # noqa: ANN401 - JSON
    """Return a value without the keys that are dropped; `changed` gets the names of all changed."""
    if isinstance(value, list):
        return [redact(item, rules, changed) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    functions = cast("Mapping[str, Any]", rules.transform)
    kept: dict[str, Any] = {}
    for key, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
        name = str(key)  # pyright: ignore[reportUnknownArgumentType]
        if name in rules.drop:
            changed.add(name)
        elif name in functions:
            changed.add(name)
            kept[name] = functions[name](inner)
        else:
            kept[name] = redact(inner, rules, changed)
    return kept


def summarise(item: Mapping[str, Any], templates: Mapping[str, str]) -> str:
    """Return an item as a text, by the template of its type."""
    payload = item.get("payload")
    fields: dict[str, Any] = payload if isinstance(payload, dict) else {"value": payload}  # pyright: ignore[reportUnknownVariableType]
    template = templates.get(str(item.get("type")))
    if template is None:
        text = ", ".join(f"{name}: {value}" for name, value in fields.items())
        return f"{item.get('type')}: {text}"
    return "".join(
        str(fields.get(part.name, "")) if isinstance(part, Reference) else part
        for part in parse_template(template)
    )


def unique(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return items in their order, each artifact once; items without an id are all kept."""
    seen: set[Any] = set()
    kept: list[dict[str, Any]] = []
    for item in items:
        id_ = item.get("id")
        if id_ is not None:
            if id_ in seen:
                continue
            seen.add(id_)
        kept.append(item)
    return kept


def name_of(provider: object) -> str:
    """Return the name of a provider for messages."""
    match provider:
        case CompositeProvider(providers=inner):
            return f"CompositeProvider({', '.join(map(name_of, inner))})"
        case RedactingProvider(provider=inner) | SummarisingProvider(provider=inner):
            return f"{type(provider).__name__}({name_of(inner)})"
        case _:
            return getattr(provider, "__name__", type(provider).__name__)
