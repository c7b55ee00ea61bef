"""Family BIND: names that one file uses and another declares."""

from collections.abc import Collection, Iterator

from weft.check.bindings import lacks_model
from weft.check.code.facts import missing_function
from weft.check.rule import rule
from weft.check.rules.tools import functions_meant
from weft.check.spelling import did_you_mean, unknown_name
from weft.check.subject import Hit, Subject
from weft.findings import Fix, Path, RenameKey
from weft.ids import slug


@rule("BIND001", "tools", "agents")
def tool_has_agent(subject: Subject) -> Iterator[Hit]:
    for index, tool in enumerate(subject.spec.tools):
        what = f"the tool {tool.function} belongs to"
        yield from _agent(subject, ("tools", index, "agent"), what, tool.agent)


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
        if hook.agent is not None:
            what = f"the hook {hook.function} is for"
            yield from _agent(subject, ("hooks", index, "agent"), what, hook.agent)
    for index, tool in enumerate(subject.spec.lifecycle_tools):
        if tool.agent is not None:
            what = f"the lifecycle tool {tool.function} is for"
            yield from _agent(subject, ("lifecycle_tools", index, "agent"), what, tool.agent)


@rule("BIND005", "orchestrator", "agents")
def initial_agent_exists(subject: Subject) -> Iterator[Hit]:
    name = subject.spec.orchestrator.initial_agent
    if name not in subject.groups:
        yield from _agent(subject, ("orchestrator", "initial_agent"), "the run begins with", name)


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
def extension_exists(subject: Subject) -> Iterator[Hit]:
    for index, extension in enumerate(subject.spec.orchestrator.runtime_extensions):
        missing = missing_function(subject, extension.entrypoint)
        if missing:
            yield Hit(
                ("orchestrator", "runtime_extensions", index, "entrypoint"),
                f"the {extension.kind} {extension.entrypoint} cannot be found: {missing.fact}",
                hint=missing.hint,
            )


def _agent(subject: Subject, path: Path, what: str, name: str) -> Iterator[Hit]:
    return _name(path, what, name, list(subject.agents), "no agent")


def _name(path: Path, what: str, name: str, known: Collection[str], role: str) -> Iterator[Hit]:
    if name not in known:
        fact = f'{what} "{name}", which is {role}'
        yield unknown_name(path, name, known, fact, "name one that is declared")
