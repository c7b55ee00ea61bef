"""Families STATE and ENV: variables that are state machines, and those that production hides."""

from typing import Final

from weft.findings import Rule

STATE: Final[tuple[Rule, ...]] = (
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

ENV: Final[tuple[Rule, ...]] = (
    Rule(
        code="ENV001",
        severity="warning",
        title="Handoff depends on an environment variable",
        why=(
            "In production a run does not see environment variables, so that all deployments "
            "behave alike. The rule would then go by the value's absence: the conversation takes "
            "another way than in your tests. Checked for production, this is an error."
        ),
        fix=(
            "Let the rule depend on a derived variable, or make the value static. If you only run "
            "in development, the warning may stand."
        ),
        example=(
            '"beta": {"type": "bool", "source": {"type": "environment", "env_var": "BETA"}}\n'
            '{"condition": "beta", "target_agent": "BetaAgent"}'
        ),
    ),
    Rule(
        code="ENV002",
        severity="warning",
        title="Prompt depends on an environment variable",
        why=(
            "In production a run does not see environment variables, so the agent would be given "
            "instructions with a gap. Checked for production, this is an error."
        ),
        fix="Make the value static, or read it from a database, a file or a service.",
        example=(
            '"region": {"type": "str", "source": {"type": "environment", "env_var": "REGION"}}\n'
            '"content": "You answer for the region {region}."'
        ),
    ),
    Rule(
        code="ENV003",
        severity="error",
        title="What is asked for does not exist here",
        why=(
            "With CONTEXT_INCLUDE_SCHEMA=0 variables from databases do not exist, and in "
            "production those from the environment. A condition or a computation that asks for "
            "one has no answer, so the package does not run there."
        ),
        fix=(
            "Decide by, or compute from, a variable that is there; or check and run the package "
            "where these variables exist."
        ),
        example=(
            '"plan": {"type": "str", "source": {"type": "database", ...}}\n'
            '{"condition": "plan == \'gold\'", ...}    with CONTEXT_INCLUDE_SCHEMA=0'
        ),
    ),
)
