"""Exposure: which agents are shown which variables, and which code runs for an agent."""

from collections.abc import Collection, Iterator

from weft.check.code_facts import code_of, path_in
from weft.check.spelling import agent_meant, variable_meant
from weft.check.subject import Subject
from weft.findings import Path


def shown_to(subject: Subject) -> dict[str, set[str]]:
    """Return what each agent is shown, agents and variables that are misspelt taken as meant."""
    shown: dict[str, set[str]] = {}
    for agent, listed in subject.spec.exposure.items():
        names = {variable_meant(subject, name) for name in listed}
        shown.setdefault(agent_meant(subject, agent), set()).update(names)
    return shown


def is_hidden(subject: Subject, name: str, shown: Collection[str]) -> bool:
    """Tell whether a variable is one that could be shown and is not."""
    return name in subject.variable_names and name not in shown and not is_secret(subject, name)


def is_secret(subject: Subject, name: str) -> bool:
    """Tell whether a variable is declared secret."""
    return name in subject.spec.variables and subject.spec.variables[name].secret


def may_read(subject: Subject, agent: str, name: str) -> bool:
    """Tell whether an agent is among the readers of a variable."""
    variable = subject.spec.variables.get(name)
    return variable is None or variable.readers is None or agent in variable.readers


def exposed(subject: Subject) -> Iterator[tuple[str, Path, str]]:
    """Yield each variable that an agent is shown, once per agent."""
    for agent, listed in subject.spec.exposure.items():
        first: dict[str, int] = {}
        for index, name in enumerate(listed):
            first.setdefault(name, index)
        for name, index in first.items():
            yield agent, ("exposure", agent, index), name


def code_for(subject: Subject, agent: str) -> set[str]:
    """Return the code that runs for an agent: its tools and hooks, and what they import."""
    spec, code = subject.spec, subject.code
    declared = [("tools", tool.file) for tool in spec.tools if tool.agent == agent]
    declared += [("tools", t.file) for t in spec.lifecycle_tools if t.agent in (None, agent)]
    declared += [("hooks", hook.file) for hook in spec.hooks if hook.agent in (None, agent)]
    waiting = [path for folder, file in declared if (path := path_in(folder, file, code))]
    modules, found = code_of(subject).modules, set[str]()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += modules[path].imports if path in modules else ()
    return found
