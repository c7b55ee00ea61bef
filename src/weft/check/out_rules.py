"""Family OUT: the models of structured outputs, and the types that refer to them."""

from collections.abc import Iterator

from weft.check.bindings import lacks_model
from weft.check.cycles import find_cycles
from weft.check.model_uses import (
    endless_models,
    idle_models,
    needed,
    uses_elsewhere,
    uses_in_models,
)
from weft.check.rules import rule
from weft.check.spelling import did_you_mean, listed, respelling, unknown_name
from weft.check.subject import Hit, Subject
from weft.findings import Fix, Remove
from weft.spec.agents import Agent


@rule("OUT001", "variables", "models", "orchestrator")
def type_names_a_model(subject: Subject) -> Iterator[Hit]:
    """Types refer to models that exist."""
    for use in (*uses_elsewhere(subject), *uses_in_models(subject)):
        for name in use.models:
            if name not in subject.models:
                yield Hit(
                    use.path,
                    f'the type of {use.what} refers to "{name}", which is no model',
                    hint=did_you_mean(name, subject.models)
                    or (f"declare the model {name} in structured_outputs, or use another type",),
                    fix=respelling(use.path, name, subject.models) if use.alone else None,
                )


@rule("OUT002", "registry", "models")
def bound_model_exists(subject: Subject) -> Iterator[Hit]:
    """Agents are bound to models that exist."""
    for index, binding in enumerate(subject.spec.registry):
        if binding.model is not None and binding.model not in subject.models:
            path = ("registry", index, "model")
            fact = f'{binding.agent} is bound to "{binding.model}", which is no model'
            otherwise = "declare the model, or write null for free text"
            yield unknown_name(path, binding.model, subject.models, fact, otherwise)


@rule("OUT003", "models", "registry", "agents", "variables", "orchestrator", "board")
def model_is_used(subject: Subject) -> Iterator[Hit]:
    """Every model is bound to an agent, or part of a type that is in use."""
    indexes = _indexes(subject)
    # Where an agent waits for its model, the binding is missing, not the use: that is reported.
    waiting = any(
        _needs_model(agent) and lacks_model(subject, agent.agent_name)
        for agent in subject.spec.agents
    )
    for name in () if waiting else idle_models(subject):
        yield Hit(
            ("models", indexes[name], "name"),
            f"nothing uses the model {name}",
            hint=("bind it to an agent in the registry, or remove it",),
        )


@rule("OUT004", "registry")
def agent_is_bound_once(subject: Subject) -> Iterator[Hit]:
    """An agent's replies fit one model."""
    first: dict[str, int] = {}
    bindings = subject.spec.registry
    for index, binding in enumerate(bindings):
        known = bindings[first.setdefault(binding.agent, index)]
        if known is not binding:
            removal = Fix("remove the second entry", (Remove(("registry", index)),))
            yield Hit(
                ("registry", index, "agent"),
                f"{binding.agent} is bound twice",
                cause=(f"first to {known.model}, then to {binding.model}",),
                hint=("keep one of the two entries",),
                fix=removal if known == binding else None,
            )


@rule("OUT005", "models")
def model_can_be_filled(subject: Subject) -> Iterator[Hit]:
    """No model needs itself: a value of it could never be complete."""
    indexes, needs = _indexes(subject), endless_models(subject.models)
    for cycle in find_cycles(needs):
        name, following = cycle[0], (*cycle, cycle[0])[1]
        fields = subject.models[name].items()
        through = [field for field, of in fields if following in needed(of, needs.keys())]
        yield Hit(
            ("models", indexes[name], "fields", through[0], "type"),
            f"{name} contains itself without end, through {listed(through)}",
            cause=(" -> ".join((*cycle, name)),) if len(cycle) > 1 else (),
            hint=(f"write optional[{following}] or list[{following}]",),
        )


def _needs_model(agent: Agent) -> bool:
    return agent.structured_outputs_required or agent.auto_tool_mode


def _indexes(subject: Subject) -> dict[str, int]:
    return {model.name: index for index, model in enumerate(subject.spec.models)}
