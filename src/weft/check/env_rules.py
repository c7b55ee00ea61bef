"""Family ENV: what depends on environment variables, which a run in production does not have."""

from collections.abc import Iterator
from itertools import pairwise

from weft.check.condition_rules import first_mentions
from weft.check.prompts import prompt_uses
from weft.check.rules import rule
from weft.check.subject import Hit, Subject
from weft.findings import Severity
from weft.spec.sources import ComputedSource, EnvironmentSource


@rule("ENV001", "handoffs", "variables")
def routing_survives_production(subject: Subject) -> Iterator[Hit]:
    """No handoff depends on an environment variable."""
    for index in subject.conditions:
        handoff = subject.spec.handoffs[index]
        for name, offset in first_mentions(handoff.condition or "").items():
            chain = _way_to_environment(subject, name)
            if chain:
                yield Hit(
                    ("handoffs", index, "condition"),
                    f"the rule {handoff.source_agent} -> {handoff.target_agent} depends on the "
                    f"environment variable {chain[-1]}, which production hides",
                    cause=_cause(chain),
                    hint=(f"decide by a derived variable, or make {chain[-1]} static",),
                    severity=_severity(subject),
                    offset=offset,
                    length=len(name),
                )


@rule("ENV002", "agents", "variables")
def prompt_survives_production(subject: Subject) -> Iterator[Hit]:
    """No prompt puts in an environment variable."""
    for use in prompt_uses(subject):
        chain = _way_to_environment(subject, use.name)
        if chain:
            yield Hit(
                use.path,
                f"the prompt of {use.agent} depends on the environment variable {chain[-1]}, "
                "which production hides",
                cause=_cause(chain),
                hint=(f"make {chain[-1]} static, or take it from a database",),
                severity=_severity(subject),
                offset=use.offset,
                length=len(use.name),
            )


def _severity(subject: Subject) -> Severity:
    return "error" if subject.profile == "production" else "warning"


def _cause(chain: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{computed} is computed from {entry}" for computed, entry in pairwise(chain))


def _way_to_environment(subject: Subject, name: str) -> tuple[str, ...]:
    """Return the variables from `name` down to the first environment variable it depends on."""
    waiting, met = [(name,)], {name}
    for chain in waiting:
        variable = subject.spec.variables.get(chain[-1])
        # A secret is used neither in prompts nor in conditions, whatever its source: other rules
        # report that.
        source = variable.source if variable and not variable.secret else None
        if isinstance(source, EnvironmentSource):
            return chain
        if isinstance(source, ComputedSource):
            fresh = [entry for entry in source.inputs if entry not in met]
            met.update(fresh)
            waiting += [(*chain, entry) for entry in fresh]
    return ()
