"""Family ENV: what depends on environment variables, which production hides."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
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
)
