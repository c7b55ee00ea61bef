"""Builders for the order of steps: paths, options of steps, approvals."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum
from typing import Any, Generic, NoReturn, Self, TypeAlias, TypeVar

from weft.dsl.flow_work import ContextBuilder, Shared, StepLike, step_name
from weft.dsl.parts import flow_part, refusal, require_function, seconds
from weft.dsl.selectors import Selector, Test, condition_of, path_of
from weft.spec import flow as spec

S = TypeVar("S")

#: A function that builds a path: `lambda p: p.then(write)`.
PathFunction: TypeAlias = "Callable[[Path[S]], object]"
#: A function that sets options of a step: `lambda o: o.with_retry(3)`.
Configure: TypeAlias = "Callable[[StepOptions[S]], object]"


class Steps(Generic[S]):
    """Builds a sequence of steps; every method returns the builder."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._nodes: list[spec.Node] = []

    def then(
        self, step: StepLike[S], configure: "Configure[S] | None" = None, *, name: str | None = None
    ) -> Self:
        """Add the next step."""
        return self._add(self._step(step, configure, name))

    def branch(
        self,
        on: Test[S],
        cases: "Mapping[Any, PathFunction[S]]",
        otherwise: "PathFunction[S] | None" = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Add a branch: choose a path by the value of a field or condition (True, False)."""
        return self._add(
            flow_part(
                spec.Branch,
                name=self._shared.numbered("branch", name),
                on=condition_of(on),
                cases=tuple(self._case(value, path) for value, path in cases.items()),
                otherwise=None if otherwise is None else self._aside(otherwise),
            )
        )

    def fork(self, *paths: "Callable[[ForkPath[S]], object]", name: str | None = None) -> Self:
        """Add parallel paths; `join` must follow. A path has the name of its first step."""
        named = self._shared.numbered("fork", name)  # Numbered before the forks inside it.
        built = [self._fork_path(number, path) for number, path in enumerate(paths, 1)]
        return self._add(flow_part(spec.Fork, name=named, paths=tuple(built)))

    def join(
        self, step: StepLike[S], configure: "Configure[S] | None" = None, *, name: str | None = None
    ) -> Self:
        """Add the step that runs when all paths of the fork have ended."""
        last = self._nodes[-1] if self._nodes else None
        if not isinstance(last, spec.Fork) or last.join:
            raise refusal("FLOW004", "there is no fork to join", "call join right after fork")
        self._nodes[-1] = last.model_copy(update={"join": self._step(step, configure, name)})
        return self

    def repeat_until(
        self,
        condition: Test[S],
        name: str,
        body: "Callable[[LoopBody[S]], object]",
        max_iterations: int = 10,
    ) -> Self:
        """Repeat steps until a condition holds, at least once."""
        steps: LoopBody[S] = LoopBody(self._shared)
        write_path(steps, body)
        return self._add(
            flow_part(
                spec.Repeat,
                name=self._shared.numbered("repeat", name),
                until=condition_of(condition),
                steps=steps.nodes(),
                max_iterations=max_iterations,
            )
        )

    def await_approval(
        self,
        approver: str,
        configure: "Callable[[ApprovalBuilder[S]], object] | None" = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Wait for the approval of a role, or of user:NAME, role:NAME or group:NAME."""
        named = self._shared.numbered("approval", name)
        approval: ApprovalBuilder[S] = ApprovalBuilder(self._shared)
        if configure is not None:
            example = 'lambda a: a.text("Pay {total}?")'
            require_function(configure, "what configures an approval", example)(approval)
        return self._add(
            flow_part(
                spec.Approval, name=named, approver=addressee(approver), **approval.declared()
            )
        )

    def nodes(self) -> tuple[spec.Node, ...]:
        """Return the steps in their spec form."""
        return tuple(self._nodes)

    def _add(self, node: spec.Node) -> Self:
        self._nodes.append(node)
        return self

    def _step(self, task: Any, configure: Any, name: str | None) -> spec.Step:  # noqa: ANN401
        named = step_name(task, name)
        options: StepOptions[S] = StepOptions(self._shared, named)
        if configure is not None:
            example = "lambda o: o.with_retry(3)"
            require_function(configure, "what configures a step", example)(options)
        work = self._shared.work(task, named)
        return flow_part(spec.Step, name=named, work=work, **options.declared())

    def _aside(self, path: "PathFunction[S]") -> spec.Path:
        return built_path(Path[S](self._shared), path)

    def _case(self, value: object, path: "PathFunction[S]") -> spec.Case:
        plain = value.value if isinstance(value, Enum) else value
        return flow_part(spec.Case, value=plain, path=self._aside(path))

    def _fork_path(self, number: int, path: "Callable[[ForkPath[S]], object]") -> spec.ForkPath:
        steps: ForkPath[S] = ForkPath(self._shared)
        write_path(steps, path)
        return steps.declared(number)


class Path(Steps[S]):
    """Builds a path off the main line, to which the run returns afterwards."""

    ends = False

    def complete(self) -> Self:
        """End the run here."""
        self.ends = True
        return self


class LowConfidencePath(Path[S]):
    """Builds the path for a result with low confidence; the run ends after it."""

    ends = True

    def rejoin_main_flow(self) -> Self:
        """Continue after the step with low confidence."""
        self.ends = False
        return self


class _Inside(Steps[S]):
    """Builds steps inside a loop or fork, which cannot end the run."""

    _of = ""

    def complete(self) -> NoReturn:
        """Refuse: a path inside a fork or loop cannot end the run."""
        fact = f"a path of {self._of} cannot end the run"
        raise refusal("FLOW017", fact, "branch after it, and let a path of that end the run")


class LoopBody(_Inside[S]):
    """Builds the body of a loop."""

    _of = "a loop"


class ForkPath(_Inside[S]):
    """Builds one path of a fork."""

    _of = "a fork"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._on_failure: spec.Path | None = None

    def on_failure(self, path: "PathFunction[S]") -> Self:
        """Add the steps for a failure of the path; after them the path has recovered."""
        self._on_failure = self._aside(path)
        return self

    def declared(self, number: int) -> spec.ForkPath:
        """Return the path in its spec form."""
        name = self._nodes[0].name if self._nodes else f"path_{number}"
        return flow_part(spec.ForkPath, name=name, steps=self.nodes(), on_failure=self._on_failure)


def write_path(steps: "Steps[Any]", path: object) -> None:
    """Call a function that builds a path; refuse a step in its place."""
    example = "lambda p: p.then(step)"
    returned = require_function(path, "a path", example)(steps)
    if returned is not steps and (returned is not None or not steps.nodes()):
        name = getattr(path, "__name__", "it")
        hint = f"write {example}; for a path without steps: lambda p: p"
        raise refusal("FLOW034", f"{name} is used as a path, but adds no step", hint, of=path)


def built_path(steps: "Path[S]", path: "Callable[..., object]") -> spec.Path:
    """Return the path that a function builds."""
    write_path(steps, path)
    return flow_part(spec.Path, steps=steps.nodes(), ends=steps.ends)


def failure_path(steps: "Path[S]", path: "Callable[..., object]") -> spec.Path:
    """Return the failure path that a function builds; refuse an empty one."""
    built = built_path(steps, path)
    if not built.steps and not built.ends:
        raise refusal("FLOW004", "on_failure has no steps", "add a step, or leave it out", of=path)
    return built


def addressee(name: str) -> str:
    """Return the approver; a plain name is a role."""
    return name if ":" in name else f"role:{name}"


class StepOptions(Generic[S]):
    """Builds the options of a step; every method returns the builder."""

    def __init__(self, shared: Shared, step: str) -> None:
        self._shared = shared
        self._step = step
        self._said: dict[str, Any] = {}
        self._guards: list[spec.Guard] = []
        self._minimum: float | None = None
        self._unsure: spec.Path | None = None

    def with_context(self, configure: "Callable[[ContextBuilder[S]], object]") -> Self:
        """Set the context of the step besides its state."""
        context: ContextBuilder[S] = ContextBuilder(self._shared, self._step)
        example = "lambda c: c.from_state(lambda s: s.topic)"
        require_function(configure, "what makes a context", example)(context)
        self._said["context"] = context.declared()
        return self

    def with_retry(self, attempts: int, *, delay: timedelta | float | None = None) -> Self:
        """Set the number of attempts. The delay doubles each time, up to one minute."""
        wait = {} if delay is None else {"delay_seconds": seconds(delay)}
        self._said["retry"] = flow_part(spec.Retry, attempts=attempts, **wait)
        return self

    def with_timeout(self, timeout: timedelta | float) -> Self:
        """Set the time limit for all attempts together."""
        self._said["timeout_seconds"] = seconds(timeout)
        return self

    def require_confidence(self, minimum: float) -> Self:
        """Set the required confidence of the result, from 0 to 1."""
        self._minimum = minimum
        return self

    def on_low_confidence(self, path: "Callable[[LowConfidencePath[S]], object]") -> Self:
        """Set the path for a result with low confidence; then the run ends."""
        self._unsure = built_path(LowConfidencePath[S](self._shared), path)
        return self

    def compensate(self, step: StepLike[S]) -> Self:
        """Set the compensation, which undoes the step if the run fails later."""
        self._said["compensate"] = self._shared.work(step, f"{self._step}/undo")
        return self

    def on_failure(self, path: "Callable[[Path[S]], object]") -> Self:
        """Set the path after the last failed attempt; then the run fails."""
        self._said["on_failure"] = failure_path(Path[S](self._shared), path)
        return self

    def validate_state(self, condition: Test[S], message: str = "") -> Self:
        """Add a condition that must hold before the step; each call adds one."""
        guard = flow_part(spec.Guard, condition=condition_of(condition), message=message)
        self._guards.append(guard)
        return self

    def declared(self) -> dict[str, Any]:
        """Return the options as fields of a step."""
        if self._minimum is not None:
            minimum, path = self._minimum, self._unsure
            self._said["confidence"] = flow_part(spec.Confidence, minimum=minimum, path=path)
        elif self._unsure is not None:
            fact = "a path for low confidence, and no confidence that is required"
            raise refusal("FLOW004", fact, "call require_confidence as well")
        return {**self._said, "validate": tuple(self._guards)}


class ApprovalBuilder(Generic[S]):
    """Builds a request for approval; every method returns the builder."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._said: dict[str, Any] = {}
        self._options: list[spec.Option] = []
        self._escalate: list[spec.Escalation] = []

    def text(self, text: str) -> Self:
        """Set the text of the request; `{name}` inserts a field of the state."""
        self._said["text"] = text
        return self

    def option(self, name: str, *, rejects: bool = False) -> Self:
        """Add an option, replacing approve and reject."""
        self._options.append(flow_part(spec.Option, name=name, rejects=rejects))
        return self

    def default(self, option: str) -> Self:
        """Set the option that is used after the timeout."""
        self._said["default"] = option
        return self

    def timeout(self, timeout: timedelta | float) -> Self:
        """Set the time limit for the answer; the default is a day."""
        self._said["timeout_seconds"] = seconds(timeout)
        return self

    def escalate_to(self, approver: str, *, timeout: timedelta | float | None = None) -> Self:
        """Ask another person after the timeout; each call adds one."""
        time = {} if timeout is None else {"timeout_seconds": seconds(timeout)}
        self._escalate.append(flow_part(spec.Escalation, approver=addressee(approver), **time))
        return self

    def on_timeout(self, path: "PathFunction[S]") -> Self:
        """Set the path for a request without an answer in time."""
        self._said["on_timeout"] = built_path(Path[S](self._shared), path)
        return self

    def on_rejection(self, path: "PathFunction[S]") -> Self:
        """Set the path for a rejection; without it the run fails."""
        self._said["on_rejection"] = built_path(Path[S](self._shared), path)
        return self

    def into(self, selector: Selector[S]) -> Self:
        """Set the field of the state that receives the chosen option."""
        self._said["output"] = path_of(selector)
        return self

    def declared(self) -> dict[str, Any]:
        """Return the settings as fields of an approval."""
        if self._options:
            self._said["options"] = tuple(self._options)
        return {**self._said, "escalate": tuple(self._escalate)}
