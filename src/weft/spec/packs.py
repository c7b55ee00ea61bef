"""Packs: several packages designed together."""

from typing import Literal, TypeAlias

from pydantic import Field

from weft.spec.part import Name, Part, Text

PackRole: TypeAlias = Literal["primary", "dependent", "independent"]


class PackMember(Part):
    """One workflow of the pack and what it is to the others."""

    name: Name
    role: PackRole
    description: Text = ""


class Journey(Part):
    """Workflows a user goes through one after the other; those of one step run side by side."""

    name: Name
    steps: tuple[tuple[Name, ...], ...] = Field(min_length=1)


class Pack(Part):
    """The packages of a pack and the order users meet them in."""

    pack_name: Name
    workflows: tuple[PackMember, ...]
    journeys: tuple[Journey, ...] = ()
