"""Family BIND: names that one file uses and another declares."""

from collections.abc import Collection, Iterator

from weft.check.board_parts import agents_of
from weft.check.code.facts import missing_function
from weft.check.declarations import lacks_model
from weft.check.rules.declared import RUN_POINTS
from weft.check.rules.tools import functions_meant
from weft.check.spelling import PATH_HINT, did_you_mean, is_address_path, unknown_name
from weft.check.subject import Hit, Subject, rule
from weft.findings import Fix, Path, RenameKey
from weft.ids import nearest, slug
from weft.spec.board import ModelEngine
from weft.spec.tools import Hook, LifecycleTool


@rule("BIND001", "tools", "mcp_servers", "agents")
def tool_has_agent(subject: Subject) -> Iterator[Hit]:
    for index, tool in enumerate(subject.spec.tools):
        what = f"the tool {tool.function} belongs to"
        yield from _agent(subject, ("tools", index, "agent"), what, tool.agent)
    for index, server in enumerate(subject.spec.mcp_servers):
        for place, agent in enumerate(server.agents):
            path = ("mcp_servers", index, "agents", place)
            yield from _agent(subject, path, f"the tool server {server.name} is for", agent)


@rule("BIND002", "exposure", "agents")
def exposure_has_agent(subject: Subject) -> Iterator[Hit]:
    for name in subject.spec.exposure:
        if name not in subject.agents:
            same = [agent for agent in subject.agents if slug(agent) == slug(name)]
            free = len(same) == 1 and same[0] not in subject.spec.exposure
            rename = RenameKey(("exposure", name), same[0]) if free else None
            yield Hit(
                ("exposure", name),
                f'variables are exposed to "{name}", which is no agent',
                hint=did_you_mean(name, subject.agents) or ("declare the agent, or remove this",),
                fix=Fix(f'write "{same[0]}" for "{name}"', (rename,)) if rename else None,
                at_key=True,
            )


@rule("BIND003", "registry", "agents")
def binding_has_agent(subject: Subject) -> Iterator[Hit]:
    for index, binding in enumerate(subject.spec.registry):
        what = f"the model {binding.model} is bound to" if binding.model else "free text is set for"
        yield from _agent(subject, ("registry", index, "agent"), what, binding.agent)


@rule("BIND004", "hooks", "lifecycle_tools", "agents")
def moment_has_agent(subject: Subject) -> Iterator[Hit]:
    for index, hook in enumerate(subject.spec.hooks):
        yield from _moment(subject, ("hooks", index), "hook", hook.hook_type, hook)
    for index, tool in enumerate(subject.spec.lifecycle_tools):
        yield from _moment(
            subject, ("lifecycle_tools", index), "lifecycle tool", tool.trigger, tool
        )


def _moment(
    subject: Subject, path: Path, kind: str, point: str, declared: Hook | LifecycleTool
) -> Iterator[Hit]:
    if declared.agent is None:
        return
    what, place = f"the {kind} {declared.function} is for", (*path, "agent")
    if point in RUN_POINTS:
        yield Hit(
            place,
            f"{what} {declared.agent}, but {point} belongs to the run: it is called for all agents",
            hint=('remove "agent"', "or call it at before_agent or after_agent"),
            severity="warning",
        )
    else:
        yield from _agent(subject, place, what, declared.agent)


@rule("BIND005", "orchestrator", "agents", "flow", "board")
def initial_agent_exists(subject: Subject) -> Iterator[Hit]:
    name, path = subject.spec.orchestrator.initial_agent, ("orchestrator", "initial_agent")
    if subject.spec.flow or subject.spec.board:
        return  # nobody begins: BOARD001 speaks of the key
    if not name:
        first = next(iter(subject.agents), "...")
        hint = f'add "initial_agent": "{first}"'
        yield Hit(path[:1], 'the key "initial_agent" is missing', hint=(hint,))
    elif name not in subject.groups:
        yield from _agent(subject, path, "the run begins with", name)


@rule("BIND011", "agents", "orchestrator", "flow", "board")
def there_are_agents(subject: Subject) -> Iterator[Hit]:
    # Artifacts can be published and read on a board before it has agents.
    is_conversation = subject.spec.flow is None and subject.spec.board is None
    if is_conversation and not subject.spec.agents:
        hint = 'add {"agent_name": "..."} to agents.json'
        yield Hit(("agents",), "the workflow has no agents", hint=(hint,))


@rule("BIND006", "orchestrator", "agents")
def visual_agents_exist(subject: Subject) -> Iterator[Hit]:
    for index, name in enumerate(subject.spec.orchestrator.visual_agents or ()):
        path = ("orchestrator", "visual_agents", index)
        if name not in subject.groups:
            yield from _agent(subject, path, "visual_agents names", name)


@rule("BIND007", "agents", "registry")
def required_model_is_bound(subject: Subject) -> Iterator[Hit]:
    for index, agent in enumerate(subject.spec.agents):
        if agent.structured_outputs_required and lacks_model(subject, agent.agent_name):
            yield Hit(
                ("agents", index, "structured_outputs_required"),
                f"{agent.agent_name} must give structured output, but no model is bound to it",
                hint=(
                    f"bind a model to {agent.agent_name} in the registry of structured_outputs",
                    "or set structured_outputs_required to false",
                ),
            )


@rule("BIND008", "variables", "agents", "tools", "lifecycle_tools", "hooks")
def rights_name_someone(subject: Subject) -> Iterator[Hit]:
    spec = subject.spec
    functions = (*spec.tools, *spec.lifecycle_tools, *spec.hooks)
    agents = list(subject.agents)
    writers = [*agents, *dict.fromkeys(one.function for one in functions)]
    misspelt = subject.once(functions_meant)
    for variable, declared in spec.variables.items():
        path: Path = ("variables", variable)
        for index, name in enumerate(declared.readers or ()):
            what = f"{variable} may be read by"
            yield from _name((*path, "readers", index), what, name, agents, "no agent")
        for index, name in enumerate(declared.writers or ()):
            if name in misspelt:
                continue
            what = f"{variable} may be written by"
            role = "neither an agent nor a tool or hook"
            yield from _name((*path, "writers", index), what, name, writers, role)


@rule("BIND009", "orchestrator", "code")
def extension_can_be_mounted(subject: Subject) -> Iterator[Hit]:
    for index, extension in enumerate(subject.spec.orchestrator.runtime_extensions):
        prefix = ("orchestrator", "runtime_extensions", index, "prefix")
        if extension.prefix is not None and extension.kind != "api_router":
            fact = f"the prefix of the {extension.kind} {extension.entrypoint} is not used"
            yield Hit(prefix, fact, hint=('remove "prefix": a router alone is mounted under one',))
        elif extension.prefix is not None and not is_address_path(extension.prefix):
            yield Hit(prefix, f'"{extension.prefix}" is no path of an address', hint=(PATH_HINT,))
        missing = missing_function(subject, extension.entrypoint, mounted=True)
        if missing:
            yield Hit(
                ("orchestrator", "runtime_extensions", index, "entrypoint"),
                f"the {extension.kind} {extension.entrypoint} cannot be found: {missing.fact}",
                hint=missing.hint,
            )


@rule("BIND010", "agents", "orchestrator", "board")
def provider_is_known(subject: Subject) -> Iterator[Hit]:
    known = subject.model_providers
    for path, name in _models(subject) if known is not None else ():
        provider = name.partition(":")[0]
        if known and provider not in known:
            meant = nearest(provider, known)
            hint = f'did you mean "{name.replace(provider, meant, 1)}"?' if meant else None
            yield Hit(
                path,
                f'the model "{name}" names unknown provider "{provider}"',
                hint=(hint or f"use PROVIDER:MODEL with one of {', '.join(sorted(known))}",),
            )


def _models(subject: Subject) -> Iterator[tuple[Path, str]]:
    """Yield the names of language models with their paths."""
    if subject.spec.orchestrator.model:
        yield ("orchestrator", "model"), subject.spec.orchestrator.model
    for index, agent in enumerate(subject.spec.agents):
        if agent.model:
            yield ("agents", index, "model"), agent.model
    for path, board_agent in agents_of(subject):
        for index, engine in enumerate(board_agent.engines):
            if isinstance(engine, ModelEngine) and engine.model:
                yield (*path, "engines", index, "model"), engine.model


def _agent(subject: Subject, path: Path, what: str, name: str) -> Iterator[Hit]:
    return _name(path, what, name, list(subject.agents), "no agent")


def _name(path: Path, what: str, name: str, known: Collection[str], role: str) -> Iterator[Hit]:
    if name not in known:
        fact = f'{what} "{name}", which is {role}'
        yield unknown_name(path, name, known, fact, "name one that is declared")
