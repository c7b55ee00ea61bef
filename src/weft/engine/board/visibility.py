"""Who may see an artifact: one rule for all readers.

Delays count from the time of publication, also when they are nested, so every policy is a time and
one of four plain policies. A malformed or unknown policy hides the artifact.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, cast

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
    """A policy as it is asked: from when on, which rule, and the names it is about."""

    visible_at: int
    policy: Policy
    names: tuple[str, ...] = ()


HIDDEN: Final = Audience(0, "hidden")

#: The policies that make an artifact visible. Any other policy hides it.
_KNOWN: Final = frozenset({"public", "private", "labelled", "tenant"})

#: The longest delay, as in `AfterVisibility`.
_LONGEST_SECONDS: Final = 3_153_600_000


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


def stored_audience(visibility: Mapping[str, Json], *, created_at: int, tenant: str) -> Audience:
    """Return who sees a stored artifact; a policy that cannot be read hides it."""
    visible_at = created_at
    while visibility.get("kind") == "after":
        seconds, then = visibility.get("seconds"), visibility.get("then", {"kind": "public"})
        if not isinstance(seconds, int | float) or not isinstance(then, dict):
            return HIDDEN
        if not 0 <= seconds <= _LONGEST_SECONDS:
            return HIDDEN
        visible_at += round(seconds * 1000)
        visibility = cast("Mapping[str, Json]", then)
    match visibility.get("kind"):
        case "public":
            return Audience(visible_at, "public")
        case "private":
            return _named(visible_at, "private", visibility.get("agents"))
        case "labelled":
            return _named(visible_at, "labelled", visibility.get("labels"))
        case "tenant":
            return _named(visible_at, "tenant", [visibility.get("tenant") or tenant])
        case _:
            return HIDDEN


def _named(visible_at: int, policy: Policy, names: Json) -> Audience:
    if not isinstance(names, list) or not names:
        return HIDDEN
    listed = cast("list[Json]", names)
    texts = tuple(name for name in listed if isinstance(name, str))
    return Audience(visible_at, policy, texts) if len(texts) == len(listed) else HIDDEN
