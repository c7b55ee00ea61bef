"""Models of structured outputs: the types that refer to them, unused and endless models."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from weft.check.declarations import lacks_model
from weft.check.rules.references import Reference, unknown_names
from weft.check.spelling import listed
from weft.check.subject import Hit, Subject, find_cycles, rule
from weft.findings import Path
from weft.ids import nearest
from weft.spec.agents import Agent
from weft.spec.orchestrator import FormStart
from weft.spec.type_meaning import Models, references
from weft.spec.types import Ref, TypeExpr, UnionOf
from weft.spec.variables import EntitySource


@rule("NAME001", "variables", "models", "orchestrator")
def type_names_a_model(subject: Subject) -> Iterator[Hit]:
    for use in (*uses_elsewhere(subject), *uses_in_models(subject)):
        references = (Reference(use.path, "model", name, f"{use.what} has") for name in use.models)
        for hit in unknown_names(subject, references):
            yield hit if use.alone else replace(hit, fix=None)


@rule("NAME003", "models", "registry", "agents", "variables", "orchestrator", "board")
def model_is_used(subject: Subject) -> Iterator[Hit]:
    indexes = _indexes(subject)
    # BIND007 and TOOL009 report an agent without its model: then the binding is missing.
    waiting = any(
        _needs_model(agent) and lacks_model(subject, agent.agent_name)
        for agent in subject.spec.agents
    )
    for name in () if waiting else idle_models(subject):
        yield Hit(
            ("models", indexes[name], "name"),
            f"the model {name} is never used",
            hint=("bind it to an agent in the registry, or remove it",),
        )


@rule("OUT005", "models")
def model_can_be_filled(subject: Subject) -> Iterator[Hit]:
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


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A type that names models; `alone` means that it consists of one model only."""

    path: Path
    what: str
    models: tuple[str, ...]
    alone: bool


def uses_in_models(subject: Subject) -> Iterator[ModelUse]:
    for index, model in enumerate(subject.spec.models):
        for key, field in model.fields.items():
            path = ("models", index, "fields", key, "type")
            yield _use(path, f"{model.name}.{key}", field.type)


def uses_elsewhere(subject: Subject) -> Iterator[ModelUse]:
    """Yield the types of variables, of documents and of the form that starts a run."""
    for name, variable in subject.spec.variables.items():
        yield _use(("variables", name, "type"), f"the variable {name}", variable.type)
        source = variable.source
        if isinstance(source, EntitySource):
            for key, field in source.document.items():
                path = ("variables", name, "source", "schema", key, "type")
                yield _use(path, f"{name}.{key}", field.type)
    start = subject.spec.orchestrator.trigger
    if isinstance(start, FormStart) and start.form is not None:
        path = ("orchestrator", "trigger", "form")
        yield ModelUse(path, "the form that starts a run", (start.form,), alone=True)


def idle_models(subject: Subject) -> list[str]:
    """Return the models that nothing uses; what an idle model contains is not listed again."""
    used = set(_roots(subject))
    _spread(subject.models, used)
    idle = [name for name in subject.models if name not in used]
    inner = {other for name in idle for other in _contained(subject.models, name) if other != name}
    listed: list[str] = []
    # Those that no other idle model contains come first, and account for what they contain.
    for name in sorted(idle, key=lambda name: name in inner):
        if name not in used:
            listed.append(name)
            used.add(name)
            _spread(subject.models, used, {name})
    return listed


def endless_models(models: Models) -> dict[str, list[str]]:
    """Return the models that no finite value fits, each with the endless models it needs."""
    users: dict[str, list[str]] = {}
    for name in models:
        for other in _contained(models, name):
            users.setdefault(other, []).append(name)
    endless, waiting = set(models), deque(models)
    queued = set(waiting)
    while waiting:
        name = waiting.popleft()
        queued.discard(name)
        if name in endless and not any(needed(of, endless) for of in models[name].values()):
            endless.discard(name)
            waiting.extend(fresh := [user for user in users.get(name, ()) if user not in queued])
            queued.update(fresh)
    return {
        name: [other for of in models[name].values() for other in needed(of, endless)]
        for name in models
        if name in endless
    }


def needed(type_: TypeExpr, endless: AbstractSet[str]) -> tuple[str, ...]:
    match type_:
        case Ref(name):
            return (name,) if name in endless else ()
        case UnionOf(members):
            parts = [needed(member, endless) for member in members]
            return tuple(name for part in parts for name in part) if all(parts) else ()
        case _:
            return ()


def _use(path: Path, what: str, type_: TypeExpr) -> ModelUse:
    return ModelUse(path, what, references(type_), isinstance(type_, Ref))


def _roots(subject: Subject) -> Iterator[str]:
    """Yield the models in use; a misspelt name counts as what it means."""
    spec, models = subject.spec, subject.models
    named = {binding.model for binding in spec.registry if binding.model}
    named.update(name for use in uses_elsewhere(subject) for name in use.models)
    named.update(
        artifact
        for artifact in (spec.board.artifacts if spec.board else ())
        if isinstance(artifact, str)
    )
    inner = {name for use in uses_in_models(subject) for name in use.models}
    for name in sorted(named | (inner - models.keys())):
        near = name if name in models else nearest(name, models)
        if near:
            yield near


def _spread(models: Models, met: set[str], start: Iterable[str] | None = None) -> None:
    """Add to `met` all models that those in `start`, or in `met`, contain."""
    waiting = list(met if start is None else start)
    while waiting:
        following = set(_contained(models, waiting.pop())) - met
        waiting.extend(following)
        met |= following


def _contained(models: Mapping[str, Mapping[str, TypeExpr]], name: str) -> Iterator[str]:
    for of in models.get(name, {}).values():
        yield from references(of)
