"""Structured outputs: the models an agent's reply must fit, and which agent is bound to which."""

from typing import Literal

from pydantic import Field

from weft.spec.part import Name, Part
from weft.spec.type_field import TypeField


class ModelField(Part):
    """One field of a model."""

    type: TypeField
    description: str = ""


class OutputModel(Part):
    """A named record type."""

    name: Name = Field(description="PascalCase; types refer to the model by it.")
    type: Literal["model"] = "model"
    description: str = ""
    fields: dict[Name, ModelField]


class OutputBinding(Part):
    """Which model an agent's replies fit; null means free text."""

    agent: Name
    model: Name | None
