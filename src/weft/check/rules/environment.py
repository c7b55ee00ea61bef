"""Family ENV: what depends on variables that do not exist where a package is to run."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from weft.check.rules.sources import needs
from weft.check.subject import Hit, Subject, rule
from weft.check.texts import Mention, inserted, routed_on
from weft.engine.variables.access import IN_PRODUCTION, suppressed_variables
from weft.spec.agents import PromptSection
from weft.spec.variables import ComputedSource, EnvironmentSource, Variable


@rule("ENV001", "handoffs", "variables")
def routing_survives_production(subject: Subject) -> Iterator[Hit]:
    uses = routed_on(subject)
    return _hidden(subject, uses, "the handoff", "decide by a derived variable, or make {} static")


@rule("ENV002", "agents", "variables")
def prompt_survives_production(subject: Subject) -> Iterator[Hit]:
    uses = inserted(subject, PromptSection)
    return _hidden(subject, uses, "the prompt of", "make {} static, or take it from a database")


def _hidden(subject: Subject, uses: Iterable[Mention], what: str, hint: str) -> Iterator[Hit]:
    """Report the uses of environment variables, direct or through computations."""
    for use in uses:
        # Other rules report a secret in a prompt or condition.
        chain = way_down(subject, use.name, _is_open_environment)
        if chain:
            yield use.hit(
                f"{what} {use.owner} depends on the environment variable {chain[-1]}, "
                "which production hides",
                hint.format(chain[-1]),
                cause=computed_from(chain),
                severity="error" if subject.profile == "production" else "warning",
            )


def _is_open_environment(variable: Variable) -> bool:
    return isinstance(variable.source, EnvironmentSource) and not variable.secret


@rule("ENV003", "handoffs", "variables")
def asks_for_what_exists(subject: Subject) -> Iterator[Hit]:
    hidden = IN_PRODUCTION if subject.profile == "production" else frozenset[str]()
    gone = suppressed_variables(subject.spec, hidden | subject.suppressed)
    for use, fact, hint in _needed(subject):
        if use.name in gone:
            in_production = subject.spec.variables[use.name].source.type in IN_PRODUCTION
            # ENV001 reports the environment variables that handoffs test.
            if not (in_production and use.path[0] == "handoffs"):
                why = "this is production" if in_production else "CONTEXT_INCLUDE_SCHEMA is off"
                yield use.hit(f"{fact}, which does not exist here ({why})", hint)


def _needed(subject: Subject) -> Iterator[tuple[Mention, str, str]]:
    """Yield the variables without which something has no value, with the fact and what to do."""
    for use in routed_on(subject):
        fact = f"the handoff {use.owner} tests {use.name}"
        yield use, fact, "decide by another variable, or set CONTEXT_INCLUDE_SCHEMA=1"
    for name, source in subject.sources(ComputedSource):
        for at, entry in enumerate(source.inputs):
            use = Mention(entry, ("variables", name, "source", "inputs", at), None, "", name)
            hint = f"compute {name} from other variables, or make {entry} static"
            yield use, f"{name} is computed from {entry}", hint
    for need in needs(subject):
        hint = f"write the value into the source, or make {need.name} static"
        yield need, f"{need.owner} is read by {need.name}", hint


def way_down(subject: Subject, name: str, is_goal: Callable[[Variable], bool]) -> tuple[str, ...]:
    """Return the path from `name` through computations to the nearest goal.

    The path does not lead through secrets; other rules report those.
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
