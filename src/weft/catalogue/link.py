"""Family LINK: what only running the code of a package can tell, found when it is loaded."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="LINK001",
        severity="error",
        title="Code of the package cannot be imported",
        why=(
            "A file raises an error while it is loaded, or needs a library that is not installed. "
            "Checking does not run code, so this is found when a run is to begin."
        ),
        fix="Install what is missing where Weft runs, or correct the line that the finding names.",
        example="import some_library        which is not installed",
    ),
    Rule(
        code="LINK002",
        severity="error",
        title="A model cannot be told how to call a tool",
        why=(
            "The description of a tool is made from the types of its parameters. A type that JSON "
            "cannot express has no description, so no model could give a value for it."
        ),
        fix=(
            "Use str, int, float, bool, list, dict, Literal, Enum, TypedDict, dataclasses or "
            "pydantic models for the parameters, and `context_variables` for the variables."
        ),
        example="def send(message: Connection) -> str: ...",
    ),
    Rule(
        code="LINK003",
        severity="error",
        title="Something is declared that this version does not perform",
        why=(
            "A run that passed it over would not be the workflow that was written: a hook that is "
            "to mask something would mask nothing, and nobody would know. So it does not begin."
        ),
        fix=(
            "Take the declaration out, or use a version of Weft that performs it. Instead of a "
            "flow or a board, let handoffs decide who speaks next."
        ),
        example='"hooks": [{"agent": "Router", "hook_type": "process_message_before_send", ...}]',
    ),
)
