"""Family OUT: the models of structured outputs, and the types that refer to them."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="OUT001",
        severity="error",
        title="Type refers to a model that does not exist",
        why="No value could be checked against the type, so nothing could ever be stored under it.",
        fix=(
            "Declare the model in structured_outputs.json, or correct the name. Names of models "
            "are compared letter by letter."
        ),
        example='"last_ticket": {"type": "optional[Tickt]", "source": ...}',
    ),
    Rule(
        code="OUT002",
        severity="error",
        title="Agent bound to a model that does not exist",
        why="There is nothing the replies of the agent could be checked against.",
        fix="Declare the model, correct its name, or write null to let the agent reply freely.",
        example='"registry": [{"agent": "Clerk", "model": "TicketSumary"}]',
    ),
    Rule(
        code="OUT003",
        severity="warning",
        title="Model that nothing uses",
        why=(
            "No agent is bound to the model and no type in use contains it, so it has no effect. "
            "Often the binding was forgotten, and an agent replies in free text by mistake."
        ),
        fix="Bind the model to an agent in the registry, use it in a type, or remove it.",
        example="a model TicketSummary, and a registry that does not mention it",
    ),
    Rule(
        code="OUT004",
        severity="error",
        title="Agent bound twice",
        why="A reply fits one model. With two bindings it is not decided which one counts.",
        fix="Keep one entry for the agent. For either of two shapes, bind a model that has both.",
        example='[{"agent": "Clerk", "model": "Ticket"}, {"agent": "Clerk", "model": null}]',
    ),
    Rule(
        code="OUT005",
        severity="error",
        title="Model contains itself without end",
        why=(
            "Each value would have to contain another value of the same model, which contains "
            "another one, and so on. No finite reply can ever fit."
        ),
        fix="Make one field on the way optional[...], list[...] or dict[...].",
        example='{"name": "Category", "fields": {"parent": {"type": "Category"}}}',
    ),
)
