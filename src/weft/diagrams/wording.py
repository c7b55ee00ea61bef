"""What stands on a picture: any text made into one short, printable line."""

from typing import Final

from weft.errors import ExpressionError
from weft.spec.agents import Handoff
from weft.spec.condition_parser import parse_condition
from weft.spec.condition_printer import print_condition
from weft.spec.starts import ChatStart, DatabaseStart, FormStart, ScheduleStart, Start

#: Longest name, description of a workflow and other text that is shown; the rest is cut.
NAME_LENGTH: Final = 48
WORKFLOW_LENGTH: Final = 400
TEXT_LENGTH: Final = 120

#: Prose is not read further than this: a picture shows the beginning only.
_READ: Final = 2_000


def shown(text: str, limit: int = TEXT_LENGTH) -> str:
    """Return text as one printable line of at most `limit` characters."""
    words = " ".join(text[:_READ].split())
    # What cannot be seen could still break a file format or turn the direction of writing.
    line = "".join(char if char.isprintable() else "\ufffd" for char in words)
    if len(line) > limit:
        line = line[: limit - 3].rstrip() + "..."
    return line or "(blank)"


def described(text: str, limit: int = TEXT_LENGTH) -> str:
    """Return what an author says of something, or nothing where nothing is said."""
    return shown(text, limit) if text.strip() else ""


def condition_words(handoff: Handoff) -> str:
    """Say when a handoff applies; a condition that does not parse is shown as it stands."""
    if handoff.condition is None:
        return "always" if handoff.condition_scope == "pre" else "otherwise"
    words = _condition(handoff, handoff.condition)
    return words if handoff.priority == 1 else f"{words} (priority {handoff.priority})"


def _condition(handoff: Handoff, text: str) -> str:
    if handoff.condition_type == "llm":
        return f"a model says: {shown(text)}"
    if handoff.condition_type == "nearest":
        return f"nearest to: {shown(text)}"
    try:
        return shown(print_condition(parse_condition(text)))
    except ExpressionError:
        return shown(text)


def start_words(start: Start) -> str:
    match start:
        case ChatStart():
            return "a chat is opened"
        case FormStart(form=form):
            return (
                f"form {shown(form, NAME_LENGTH)} is submitted" if form else "a form is submitted"
            )
        case ScheduleStart(cron=cron, timezone=zone):
            return shown(f"schedule {cron} {zone}")
        case DatabaseStart(collection=collection, condition=condition):
            return shown(f"{collection} changed: {condition}")
        case _:
            return shown(f"webhook {start.path}") if start.path else "a webhook is called"
