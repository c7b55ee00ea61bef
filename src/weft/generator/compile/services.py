"""Calls of services: what each asks for, where, and what becomes of the answer."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weft.generator.compile.texts import line
from weft.generator.compile.variable_types import DEFAULTS
from weft.generator.names import snake_case
from weft.generator.shapes import ToolShape
from weft.generator.workflow_plan import WorkflowPlan
from weft.spec.part import JsonValue
from weft.spec.tools import Hook, LifecycleTool
from weft.spec.triggers import ToolCallTrigger, Trigger
from weft.spec.type_parser import parse_type
from weft.spec.variables import (
    DerivedSource,
    EnvironmentSource,
    ExternalSource,
    ServiceAuth,
    ServiceRetry,
    Variable,
)

#: How a purpose begins that only reads; with an "and" it may do more.
_READS: Final = re.compile(
    r"(?:looks? up|finds?|reads?|gets?|checks?|search(?:es)?|lists?)\b(?!.*\band\b)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """A function that asks a service, and the variables for what it asks and what it hears."""

    function: str
    service: str
    purpose: str
    query: str
    answer: str
    #: Whether a model passes what is asked for; else the function knows it.
    by_model: bool


def asked_by(function: str) -> tuple[str, str]:
    """Return the variables of a call of a service: what is asked for, and the answer."""
    return f"{function}_service_query", f"{function}_service_answer"


def service_calls(
    shapes: Iterable[ToolShape], boundaries: Iterable[LifecycleTool | Hook]
) -> Iterator[ServiceCall]:
    """Yield every call of a service: those of tools, and those at boundaries."""
    for it in shapes:
        if it.kind == "external":
            yield ServiceCall(
                it.name, it.integration or "service", it.purpose, *it.variables, by_model=True
            )
    for it in boundaries:
        if it.integration:
            names = asked_by(it.function)
            yield ServiceCall(it.function, it.integration, it.description, *names, by_model=False)


def service_variables(call: ServiceCall, key: str | None) -> dict[str, Variable]:
    """Return what a call needs: the address of the service, what is asked, and the answer."""
    name, address = snake_case(call.service, "service"), address_of(call.service)
    given = [ToolCallTrigger(tool=call.function, argument="query")] if call.by_model else []
    # What has an effect is asked for once: nobody knows whether a lost call has had it.
    retry = ServiceRetry(attempts=2) if _READS.match(call.purpose) else None
    return {
        address: Variable(
            type=parse_type("optional[str]"),
            description=line(f"The address of {call.service}, without a slash at its end."),
            source=EnvironmentSource(env_var=address.upper()),
        ),
        call.query: derived(
            "str", DEFAULTS["str"], f"What {call.function} asks {call.service} for.", given
        ),
        call.answer: Variable(
            type=parse_type("any"),
            description=line(f"What {call.service} answered to {call.function}."),
            source=ExternalSource(
                service=call.service,
                operation=call.function,
                url=f"{{{address}}}/{call.function}?q={{{call.query}}}",
                auth=ServiceAuth(type="bearer", secret_env=(key or f"{name}_token").upper()),
                retry=retry,
                refresh_strategy="on_demand",
            ),
        ),
    }


def address_of(service: str) -> str:
    """Return the variable with the address of a service."""
    return f"{snake_case(service, 'service')}_url"


def service_notes(workflow: WorkflowPlan) -> Iterator[str]:
    """Yield for each service of a plan what must be done before it is asked in earnest."""
    blueprint = workflow.blueprint
    around = (blueprint.before_chat_lifecycle, blueprint.after_chat_lifecycle)
    asking = [
        *(tool for it in workflow.agents for tool in (*it.agent_tools, *it.lifecycle_tools)),
        *(it for it in around if it),
    ]
    first = {it.integration: it.name for it in reversed(asking) if it.integration}
    for service, name in reversed(first.items()):
        function = snake_case(name, "tool")
        where = f"{address_of(service).upper()}/{function}"
        yield (
            f"{function} asks {service} by GET at {where}: put the real address there, "
            "or use a tool server"
        )


def derived(
    type_: str, default: JsonValue, description: str, triggers: Sequence[Trigger]
) -> Variable:
    """Return a variable that events set."""
    return Variable(
        type=parse_type(type_),
        description=line(description),
        source=DerivedSource(default=default, triggers=tuple(triggers)),
    )
