"""The code of the news desk: which leads count, what is checked, and the style of the house."""

import re
from typing import Any, Final

_MAIL: Final = re.compile(r"[^\s@]+@[^\s@]+")
_LEAST_URGENT: Final = 2
_MOST_WORDS: Final = 200


def is_newsworthy(lead: dict[str, Any]) -> bool:
    """Tell whether a lead is worth a story."""
    return lead["urgency"] >= _LEAST_URGENT and bool(lead["headline"].strip())


def check_story(inputs) -> dict[str, Any]:
    """Say what is wrong with a story: what a rule can find, no model is asked for."""
    story = inputs.artifacts[0].payload
    remarks: list[str] = []
    if _MAIL.search(story["text"]):
        remarks.append("an address is printed")
    if len(story["text"].split()) > _MOST_WORDS:
        remarks.append("it is too long")
    return {"headline": story["headline"], "sound": not remarks, "remarks": remarks}


def without_address(source: str) -> str:
    """Return where a lead comes from, without addresses of people."""
    return _MAIL.sub("(an address)", source)


class HouseStyle:
    """Gives every agent the style rules of the paper."""

    def __init__(self, longest_sentence: int = 25) -> None:
        self._longest = longest_sentence

    def pre_consume(self, ctx, inputs) -> None:  # noqa: ARG002
        """Put the style into the state, from where the provider takes it."""
        ctx.state["house_style"] = {
            "sentences": f"at most {self._longest} words each",
            "names": "in full, where they first stand",
        }
