"""Family ENV: what depends on variables that do not exist where a package is to run."""

from collections.abc import Callable, Iterator
from itertools import pairwise

from weft.check.declarations import insertions
from weft.check.rules.conditions import named_in
from weft.check.subject import Hit, Subject, rule
from weft.engine.variables.access import IN_PRODUCTION, suppressed_variables
from weft.findings import Severity
from weft.spec.agents import WORD_CONDITIONS
from weft.spec.variables import ComputedSource, EnvironmentSource, Variable


@rule("ENV001", "handoffs", "variables")
def routing_survives_production(subject: Subject) -> Iterator[Hit]:
    for index, handoff in enumerate(subject.spec.handoffs):
        if index not in subject.conditions and handoff.condition_type not in WORD_CONDITIONS:
            continue
        for name, offset in named_in(handoff).items():
            chain = _way_to_environment(subject, name)
            if chain:
                yield Hit(
                    ("handoffs", index, "condition"),
                    f"the handoff {handoff.source_agent} -> {handoff.target_agent} depends on the "
                    f"environment variable {chain[-1]}, which production hides",
                    cause=computed_from(chain),
                    hint=(f"decide by a derived variable, or make {chain[-1]} static",),
                    severity=_severity(subject),
                    offset=offset,
                    length=len(name),
                )


@rule("ENV002", "agents", "variables")
def prompt_survives_production(subject: Subject) -> Iterator[Hit]:
    for use in insertions(subject):
        chain = _way_to_environment(subject, use.name)
        if chain:
            yield Hit(
                use.path,
                f"the prompt of {use.agent} depends on the environment variable {chain[-1]}, "
                "which production hides",
                cause=computed_from(chain),
                hint=(f"make {chain[-1]} static, or take it from a database",),
                severity=_severity(subject),
                offset=use.offset,
                length=len(use.name),
            )


@rule("ENV003", "handoffs", "variables")
def asks_for_what_exists(subject: Subject) -> Iterator[Hit]:
    hidden = IN_PRODUCTION if subject.profile == "production" else frozenset[str]()
    gone = suppressed_variables(subject.spec, hidden | subject.suppressed)
    for index, handoff in enumerate(subject.spec.handoffs if gone else ()):
        if index not in subject.conditions and handoff.condition_type not in WORD_CONDITIONS:
            continue
        for name, offset in named_in(handoff).items():
            # Of those from the environment ENV001 speaks.
            if name in gone and subject.spec.variables[name].source.type not in IN_PRODUCTION:
                yield Hit(
                    ("handoffs", index, "condition"),
                    f"the handoff {handoff.source_agent} -> {handoff.target_agent} tests {name}, "
                    f"which does not exist here {_why(subject, name)}",
                    hint=("decide by another variable, or set CONTEXT_INCLUDE_SCHEMA=1",),
                    offset=offset,
                    length=len(name),
                )
    for name, source in subject.sources(ComputedSource):
        for at, entry in enumerate(source.inputs):
            if entry in gone:
                yield Hit(
                    ("variables", name, "source", "inputs", at),
                    f"{name} is computed from {entry}, which does not exist here "
                    f"{_why(subject, entry)}",
                    hint=(f"compute {name} from other variables, or make {entry} static",),
                )


def _why(subject: Subject, name: str) -> str:
    production = subject.spec.variables[name].source.type in IN_PRODUCTION
    return "(this is production)" if production else "(CONTEXT_INCLUDE_SCHEMA is off)"


def _severity(subject: Subject) -> Severity:
    return "error" if subject.profile == "production" else "warning"


def _way_to_environment(subject: Subject, name: str) -> tuple[str, ...]:
    # A secret is used neither in prompts nor in conditions, whatever its source: other rules
    # report that.
    return way_down(
        subject, name, lambda it: isinstance(it.source, EnvironmentSource) and not it.secret
    )


def way_down(subject: Subject, name: str, is_goal: Callable[[Variable], bool]) -> tuple[str, ...]:
    """Return the variables from `name` down to the nearest goal that it is or comes from.

    What comes from a secret is a matter of its own, so the way does not lead through one.
    """
    waiting, met = [(name,)], {name}
    for chain in waiting:
        variable = subject.spec.variables.get(chain[-1])
        if variable is None:
            continue
        if is_goal(variable):
            return chain
        if isinstance(variable.source, ComputedSource) and not variable.secret:
            fresh = [entry for entry in variable.source.inputs if entry not in met]
            met.update(fresh)
            waiting += [(*chain, entry) for entry in fresh]
    return ()


def computed_from(way: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{computed} is computed from {entry}" for computed, entry in pairwise(way))
