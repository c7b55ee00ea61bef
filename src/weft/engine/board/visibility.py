"""Who may see an artifact: one rule for all readers.

Delays count from the time of publication, also when they are nested, so every policy is a time and
one of four plain policies. A malformed or unknown policy hides the artifact.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from pydantic import TypeAdapter, ValidationError

from weft.findings import Json
from weft.spec.board import (
    AfterVisibility,
    LabelledVisibility,
    PrivateVisibility,
    PublicVisibility,
    Visibility,
)

Policy: TypeAlias = Literal["public", "private", "labelled", "tenant", "hidden"]


class Identity(NamedTuple):
    """Who reads: an agent with its labels, in a tenant."""

    agent: str
    labels: frozenset[str]
    tenant: str


class Audience(NamedTuple):
    """A policy in its stored form: when it starts, which rule, and the names it lists."""

    visible_at: int
    policy: Policy
    names: tuple[str, ...] = ()


HIDDEN: Final = Audience(0, "hidden")

#: The policies that make an artifact visible. Any other policy hides it.
_KNOWN: Final = frozenset({"public", "private", "labelled", "tenant"})

VISIBILITY: Final[TypeAdapter[Visibility]] = TypeAdapter(Visibility)


def audience(visibility: Visibility, *, created_at: int, tenant: str) -> Audience:
    """Return who sees an artifact that was published at a time in a tenant."""
    visible_at = created_at
    while isinstance(visibility, AfterVisibility):
        visible_at += round(visibility.seconds * 1000)
        visibility = visibility.then
    match visibility:
        case PublicVisibility():
            return Audience(visible_at, "public")
        case PrivateVisibility(agents=agents):
            return Audience(visible_at, "private", agents)
        case LabelledVisibility(labels=labels):
            return Audience(visible_at, "labelled", labels)
        case _:
            return Audience(visible_at, "tenant", (visibility.tenant or tenant,))


def denial(seen: Audience, reader: Identity, now: int) -> str | None:
    """Say why a reader may not see an artifact now, or None if it may."""
    if seen.policy not in _KNOWN:
        return "its visibility cannot be read, so it is hidden"
    if now < seen.visible_at:
        return f"it is visible only in {(seen.visible_at - now) / 1000:g} seconds"
    match seen.policy:
        case "private" if reader.agent not in seen.names:
            return f"it is private to {', '.join(seen.names)}"
        case "labelled" if not reader.labels.issuperset(seen.names):
            lacking = (name for name in seen.names if name not in reader.labels)
            return f"{reader.agent} lacks the label {', '.join(lacking)}"
        case "tenant" if reader.tenant not in seen.names:
            return f"it is for the tenant {seen.names[0]}"
        case _:
            return None


def may_see(seen: Audience, reader: Identity, now: int) -> bool:
    return denial(seen, reader, now) is None


def read_policy(policy: Json) -> Visibility | None:
    """Return a policy that is written as JSON; None if it cannot be read."""
    try:
        return None if policy is None else VISIBILITY.validate_python(policy)
    except ValidationError:
        return None


def stored_audience(policy: Json, *, created_at: int, tenant: str) -> Audience:
    """Return who sees a stored artifact; a policy that cannot be read hides it."""
    visibility = read_policy(policy)
    if visibility is None:
        return HIDDEN
    return audience(visibility, created_at=created_at, tenant=tenant)
