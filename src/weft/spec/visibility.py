"""Visibility: who may see an artifact, and from when on."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from weft.spec.part import READ_NAMES, Name, Part


class PublicVisibility(Part):
    """Every agent of the board sees it."""

    kind: Literal["public"] = "public"


class PrivateVisibility(Part):
    """Only the named agents see it."""

    kind: Literal["private"] = "private"
    agents: Annotated[tuple[Name, ...], Field(min_length=1, max_length=100), READ_NAMES]


class LabelledVisibility(Part):
    """Only agents that have all of the labels see it."""

    kind: Literal["labelled"] = "labelled"
    labels: Annotated[tuple[Name, ...], Field(min_length=1, max_length=100), READ_NAMES]


class TenantVisibility(Part):
    """Only agents that work for the tenant see it; null is the tenant it was published in."""

    kind: Literal["tenant"] = "tenant"
    tenant: Name | None = None


class AfterVisibility(Part):
    """Nobody sees it until some time after it was published; then as `then` says."""

    kind: Literal["after"] = "after"
    seconds: float = Field(ge=0, le=3_153_600_000, allow_inf_nan=False)
    then: "Visibility" = PublicVisibility()


Visibility: TypeAlias = Annotated[
    PublicVisibility | PrivateVisibility | LabelledVisibility | TenantVisibility | AfterVisibility,
    Field(discriminator="kind"),
]

PUBLIC = PublicVisibility()
