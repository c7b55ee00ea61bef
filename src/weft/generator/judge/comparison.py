"""A plan and a draft side by side, with what the checks of conformance look up."""

import re
from functools import cached_property

from weft.catalogue import CATALOGUE
from weft.check.code.facts import path_in, reachable
from weft.check.subject import Subject
from weft.findings import Finding, Place
from weft.generator.draft import Draft
from weft.generator.judge.routes import Routes
from weft.generator.judge.stubs import function_texts
from weft.generator.plans.workflow_plan import WorkflowPlan
from weft.spec.templates import references
from weft.spec.tools import AgentTool, UiTool
from weft.spec.triggers import Trigger
from weft.spec.variables import ComputedSource, DerivedSource, ExternalSource


class Comparison:
    """A plan and a draft side by side, with what several checks look up."""

    def __init__(self, workflow: WorkflowPlan, draft: Draft) -> None:
        self.workflow, self.draft, self.spec = workflow, draft, draft.spec
        self.subject = Subject(draft.spec, folder=draft.name, code=draft.code)
        self.agents = {agent.agent_name: agent for agent in draft.spec.agents}
        self.planned = {agent.agent_name: agent for agent in workflow.agents}
        self.variables = {
            variable.name: variable for variable in workflow.blueprint.global_context_variables
        }

    def finding(self, code: str, file: str, message: str, *hint: str) -> Finding:
        """Return a finding in a file of the package."""
        rule = CATALOGUE[code]
        place = Place(f"{self.draft.name}/{file}")
        return Finding(code, rule.severity, message, place, hint=hint or (rule.fix,))

    @cached_property
    def routes(self) -> Routes:
        """The handoff rules, and what they decide."""
        return Routes(self.workflow, self.spec, self.draft.code)

    @cached_property
    def triggers(self) -> list[tuple[str, Trigger]]:
        """All triggers, each with its variable."""
        sources = [
            (name, variable.source)
            for name, variable in self.spec.variables.items()
            if isinstance(variable.source, DerivedSource)
        ]
        own = [(name, trigger) for name, source in sources for trigger in source.triggers]
        steps = [(name, step.trigger) for name, source in sources for step in source.transitions]
        return [*own, *((name, trigger) for name, trigger in steps if trigger is not None)]

    def tools_of(self, agent: str) -> list[AgentTool | UiTool]:
        """Return the tools of an agent."""
        return [tool for tool in self.spec.tools if tool.agent == agent]

    def sees(self, agent: str, variable: str) -> bool:
        """Return whether a variable is in the prompt of an agent, or read by its code."""
        return variable in self.spec.exposure.get(agent, ()) or variable in self.code_words(agent)

    def code_words(self, agent: str) -> set[str]:
        """Return the names in quotes in the code of an agent's tools and of the run."""
        owned = [tool for tool in self.spec.lifecycle_tools if tool.agent in (None, agent)]
        found: set[str] = set()
        for entry in (*self.tools_of(agent), *owned):
            found |= self.quoted("tools", entry.file, entry.function)
        for name, variable in self.spec.variables.items():
            source = variable.source
            if isinstance(source, ComputedSource) and name in found:
                found |= {*source.inputs}
            elif isinstance(source, ExternalSource) and name in found:
                found |= {part.name for part in references(f"{source.url} {source.body}")}
        return found

    def quoted(self, folder: str, file: str, function: str) -> set[str]:
        """Return the texts that a function and its helpers name in quotes."""
        path = path_in(folder, file, self.draft.code) or ""
        names = {function, *(name for name in self.mentions(path, function))}
        text = self.draft.code.get(path, "")
        bodies = (body for name, body in function_texts(text) if name in names)
        return {word for body in bodies for word in re.findall(r"""["']([A-Za-z_]\w*)["']""", body)}

    def mentions(self, path: str, function: str) -> set[str]:
        """Return the names that a function uses, also through its helpers."""
        found = reachable(self.subject, path, function)
        return {name for definition in found for name in definition.mentions}

    def sets(self, agent: str) -> set[str]:
        """Return the variables that the code of an agent's tools sets."""
        found: set[str] = set()
        for tool in (*self.tools_of(agent), *self.spec.lifecycle_tools):
            path = path_in("tools", tool.file, self.draft.code) or ""
            for definition in reachable(self.subject, path, tool.function):
                found |= {write.variable for write in definition.writes if write.variable}
        return found

    def is_visible(self, agent: str) -> bool:
        """Return whether the user sees the messages of an agent."""
        shown = self.spec.orchestrator.visual_agents
        return shown is None or agent in shown
