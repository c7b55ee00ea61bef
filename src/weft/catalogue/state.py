"""Family STATE: derived variables with transitions, which are state machines."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="STATE001",
        severity="error",
        title="Default is not one of the states",
        why=(
            "The states are all values that transitions lead from or to. A variable that starts "
            "outside of them can never change, because no transition applies."
        ),
        fix="Make one of the states the default, or add a transition from the default.",
        example=('"default": "new",\n"transitions": [{"from": "open", "to": "closed"}]'),
    ),
    Rule(
        code="STATE002",
        severity="error",
        title="State that can never be reached",
        why=(
            "No chain of transitions leads from the default to this state. Every rule and trigger "
            "that waits for it waits in vain."
        ),
        fix="Add the missing transition, or remove the state and what leads from it.",
        example=(
            '"default": "open",\n'
            '"transitions": [{"from": "open", "to": "closed"}, {"from": "review", "to": "closed"}]'
        ),
    ),
    Rule(
        code="STATE003",
        severity="warning",
        title="State without a way out that nothing tests for",
        why=(
            "Once the variable has this value it keeps it, and no handoff condition looks at it. "
            "The run could sit there without anyone noticing."
        ),
        fix="Add a handoff that tests for the state, or a transition that leads on.",
        example=(
            '"default": "open",\n"transitions": [{"from": "open", "to": "closed"}]'
            "    (no condition mentions 'closed')"
        ),
    ),
    Rule(
        code="STATE004",
        severity="error",
        title="Trigger sets a state that no transition leads to",
        why=(
            "Where transitions are declared, every other change is refused. The trigger would fire "
            "and nothing would happen."
        ),
        fix="Correct the value, or add a transition to it.",
        example=(
            '"transitions": [{"from": "open", "to": "closed"}],\n'
            '"triggers": [{"type": "tool_call", "tool": "finish", "value": "done"}]'
        ),
    ),
    Rule(
        code="STATE005",
        severity="warning",
        title="Transition is written twice",
        why="The second one adds nothing; one of the two was probably meant to be another.",
        fix="Correct or remove one of the two; `weft check --fix` removes the second.",
        example=(
            '"transitions": [{"from": "open", "to": "closed"},\n'
            '                {"from": "open", "to": "closed"}]'
        ),
    ),
)
