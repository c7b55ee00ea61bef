"""The builder of flows: it makes the same spec as flow.json and the files beside it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel

from weft.check.run import check
from weft.check.subject import Subject
from weft.dsl.flow_step import Configure, Path, PathFunction, Steps, failure_path
from weft.dsl.flow_work import Shared, StepLike, declared_agent
from weft.dsl.objects import LocalObjects
from weft.dsl.parts import failed, flow_part, refusal
from weft.dsl.state_type import StateTypes, require_class
from weft.findings import Finding, is_error
from weft.spec import flow as spec
from weft.spec.agents import Agent
from weft.spec.orchestrator import Orchestrator
from weft.spec.templates import references
from weft.spec.type_field import OutputBinding
from weft.spec.variables import Variable
from weft.spec.workflow import WorkflowSpec

S = TypeVar("S", bound=BaseModel)


class WorkflowBuilder(Steps[S], Generic[S]):
    """Builds a flow; every method returns the builder."""

    def __init__(self, name: str, state: type[S], *, description: str = "") -> None:
        if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise refusal("FLOW002", "the workflow has no name", 'write one: "InvoiceReview"')
        super().__init__(Shared())
        self.name = name
        require_class(state, "the state")
        self._state = state
        self._description = description
        self._variables: dict[str, Variable] = {}
        self._last: spec.Step | None = None
        self._said: dict[str, Any] = {}
        self._findings: tuple[Finding, ...] = ()

    def start_with(
        self, step: StepLike[S], configure: "Configure[S] | None" = None, *, name: str | None = None
    ) -> Self:
        """Add the first step."""
        if self._nodes:
            raise refusal("FLOW004", "the flow has begun already", "call then for the next step")
        self._nodes.append(self._step(step, configure, name))
        return self

    def on_failure(self, path: "PathFunction[S]") -> Self:
        """Add the path that runs before a run ends as failed."""
        self._said["on_failure"] = failure_path(Path[S](self._shared), path)
        return self

    def finally_(
        self, step: StepLike[S], configure: "Configure[S] | None" = None, *, name: str | None = None
    ) -> Self:
        """Add the last step; it is skipped if the run has failed or a path has completed it."""
        if self._last is not None:
            raise refusal("FLOW004", "finally_ is called twice", "call then for the first of both")
        self._last = self._step(step, configure, name)
        return self

    def compensate_on_cancel(self) -> Self:
        """Run the compensations when the run is stopped."""
        self._said["compensate_on_cancel"] = True
        return self

    def agent(
        self,
        name: str,
        *,
        prompt: str = "",
        description: str = "",
        model: str | None = None,
        tools: Iterable[Callable[..., Any]] = (),
        output_type: type[BaseModel] | None = None,
    ) -> Self:
        """Declare an agent; `weft.flow.agent(name)` uses it for a step."""
        declared = declared_agent(name, prompt, description, model)
        self._shared.add_agent(declared, tools, output_type)
        return self

    def variables(self, variables: Mapping[str, Variable]) -> Self:
        """Declare variables outside the state, read from files, databases or services."""
        taken = [name for name in variables if name in self._state.model_fields]
        if taken:
            fact = f"{', '.join(taken)} is a field of the state already"
            raise refusal("FLOW034", fact, "give the variable another name")
        self._variables |= variables
        return self

    @property
    def objects(self) -> LocalObjects:
        """The objects of this process that the flow refers to."""
        return self._shared.objects

    @property
    def state_type(self) -> type[S]:
        """The class of its state."""
        return self._state

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The warnings of the last build."""
        return self._findings

    def build(self) -> WorkflowSpec:
        """Return the spec. Raises CheckFailed with all findings if it has errors."""
        built = self._declared()
        found = check(Subject(built))
        self._findings = tuple(finding for finding in found if not is_error(finding))
        errors = [finding for finding in found if is_error(finding)]
        if errors:
            count = f"{len(errors)} error{'s' if len(errors) > 1 else ''}"
            raise failed(f"the workflow {self.name} has {count} and cannot run", errors)
        return built

    def _declared(self) -> WorkflowSpec:
        shared = self._shared
        types = StateTypes([self._state, *shared.outputs.values()])
        variables = {**types.variables(self._state), **self._variables}
        bound = {agent: types.name(output) for agent, output in shared.outputs.items()}
        return flow_part(
            WorkflowSpec,
            orchestrator=flow_part(
                Orchestrator, workflow_name=self.name, description=self._description
            ),
            agents=tuple(shared.agents),
            variables=variables,
            exposure=_inserted(shared.agents),
            tools=tuple(shared.tools),
            models=tuple(types.models()),
            registry=tuple(
                OutputBinding(agent=agent, model=model) for agent, model in bound.items()
            ),
            flow=flow_part(
                spec.Flow,
                state=shared.objects.name(self._state),
                steps=self.nodes(),
                **{"finally": self._last, **self._said},
            ),
        )

    def _add(self, node: spec.Node) -> Self:
        if not self._nodes:
            raise refusal("FLOW004", "the flow does not begin", "call start_with first")
        if self._last is not None:
            raise refusal("FLOW004", "nothing is done after finally_", "call finally_ last")
        return super()._add(node)


def _inserted(agents: Iterable[Agent]) -> dict[str, tuple[str, ...]]:
    """Return the variables that each agent's prompt inserts."""
    found = {
        agent.agent_name: [
            name.name for part in agent.prompt_sections for name in references(part.content)
        ]
        for agent in agents
    }
    return {agent: tuple(dict.fromkeys(names)) for agent, names in found.items() if names}
