"""Puts the format card in place, which the agents that write a package are shown."""

from weft import Context
from weft.generator.reading import read_card


def format_card(context_variables: Context) -> None:
    """Set the variable that prompts insert."""
    context_variables.set("format_card", read_card())
