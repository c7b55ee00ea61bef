"""Family FLOW, first part: the order of steps, retries, time limits and approvals."""

import re
from collections.abc import Iterator
from typing import Final

from weft.check.flow_parts import flow_of, is_flow, placed_parts, sources, steps, works
from weft.check.rules.board import changed
from weft.check.rules.references import Reference, unknown_name
from weft.check.subject import Hit, Subject, rule
from weft.check.values import key_of
from weft.findings import Path
from weft.spec import flow as spec
from weft.spec.agents import HistoryIngredient
from weft.spec.tools import ADDRESSEE

#: What only a conversation has, of the workflow and of its agents.
_OF_WORKFLOW: Final = (
    "initial_agent", "parallel", "default_target", "orchestration_pattern", "initial_message",
    "initial_message_to_user", "max_turns", "human_in_the_loop", "initiated_by", "startup_mode",
    "visual_agents", "condition_profile", "llm_conditions",
)  # fmt: skip
_OF_AGENTS: Final = (
    "handoff_tools", "auto_tool_mode", "human_interaction", "max_consecutive_auto_reply",
)  # fmt: skip

#: The most of what a flow may wait, and try: beyond, somebody has mistaken the unit.
_YEAR: Final = 31_536_000
_MOST_ATTEMPTS: Final = 1000


@rule("FLOW001", "flow", "orchestrator", "handoffs", "agents")
def one_way_to_work_together(subject: Subject) -> Iterator[Hit]:
    workflow = subject.spec
    if not is_flow(subject):
        return
    parts = [*changed(workflow.orchestrator, _OF_WORKFLOW, ("orchestrator",))]
    parts += [(("handoffs", 0), "handoffs")] if workflow.handoffs else []
    for index, agent in enumerate(workflow.agents):
        parts += changed(agent, _OF_AGENTS, ("agents", index))
    for path, name in parts:
        yield Hit(
            path,
            f"{name} is for a conversation, and this workflow is a flow",
            hint=("remove it: in a flow, steps say who works", "or remove flow.json"),
        )


@rule("FLOW002", "flow", "orchestrator")
def everything_has_a_name(subject: Subject) -> Iterator[Hit]:
    if not is_flow(subject):
        return
    if not subject.spec.orchestrator.workflow_name.strip():
        path = ("orchestrator", "workflow_name")
        yield Hit(path, "the workflow has no name", hint=("write a name in PascalCase",))
    for path, name in _names(subject):
        if not name.strip():
            fact = "a part of the flow has no name"
            yield Hit(path, fact, hint=("say in one or two words what is done there",))
    for path, name in (*_names(subject), *_path_names(subject)):
        if "/" in name:
            fact = f'"{name}" has a slash, which separates names in the journal'
            yield Hit(path, fact, hint=("write the name without /",))


def _path_names(subject: Subject) -> Iterator[tuple[Path, str]]:
    for path, fork in forks(subject):
        firsts = [it.steps[0].name if it.steps else "" for it in fork.paths]
        for index, it in enumerate(fork.paths):
            if it.name != firsts[index]:  # A path that is called like its first step.
                yield (*path, "paths", index, "name"), it.name


def _names(subject: Subject) -> Iterator[tuple[Path, str]]:
    for it in placed_parts(subject):
        if not isinstance(it.part, spec.Path):
            yield (*it.path, "name"), it.part.name


@rule("FLOW003", "flow")
def there_are_steps(subject: Subject) -> Iterator[Hit]:
    if is_flow(subject) and not flow_of(subject).steps:
        fact = "the flow has no steps, so nothing is done"
        yield Hit(("flow",), fact, hint=("add steps, in the order in which they are done",))


@rule("NAME002", "flow")
def names_are_unique(subject: Subject) -> Iterator[Hit]:
    """Check the names of steps, of paths in a fork, of options and of filters, and case values."""
    for noun, entries in _named_once(subject):
        met: set[str] = set()
        for path, name in entries:
            if name in met:
                message = f"duplicate {noun}: {name}"
                yield Hit(path, message, hint=("rename or remove one of the two",))
            met.add(name)


def _named_once(subject: Subject) -> Iterator[tuple[str, list[tuple[Path, str]]]]:
    """Yield lists of names that must differ within each list."""
    yield "step", list(_names(subject))
    for path, fork in forks(subject):
        paths = [((*path, "paths", n, "name"), it.name) for n, it in enumerate(fork.paths)]
        yield f"path of the fork {fork.name}", paths
    for path, approval in approvals(subject):
        options = [((*path, "options"), option.name) for option in approval.options]
        yield f"option of {approval.name}", options
    for it in placed_parts(subject):
        if isinstance(it.part, spec.Branch):
            cases = enumerate(it.part.cases)
            values = [((*it.path, "cases", n, "value"), key_of(case.value)) for n, case in cases]
            yield f"case of the branch {it.part.name}", values
    for path, step, source in sources(subject):
        if isinstance(source, spec.RetrievalIngredient):
            keys = [((*path, "filters", n, "key"), one.key) for n, one in enumerate(source.filters)]
            yield f"filter in the retrieval of {step.name}", keys


def forks(subject: Subject) -> Iterator[tuple[Path, spec.Fork]]:
    for it in placed_parts(subject):
        if isinstance(it.part, spec.Fork):
            yield it.path, it.part


@rule("FLOW006", "flow")
def fork_has_a_join(subject: Subject) -> Iterator[Hit]:
    for path, fork in forks(subject):
        if fork.join is None:
            fact = f"the paths of the fork {fork.name} never come together"
            yield Hit(path, fact, hint=("add the step that joins them: join",))


@rule("FLOW007", "flow")
def fork_has_paths(subject: Subject) -> Iterator[Hit]:
    for path, fork in forks(subject):
        if len(fork.paths) < 2:
            count = "one path" if fork.paths else "no paths"
            fact = f"the fork {fork.name} has {count}, and nothing to go beside it"
            yield Hit(path, fact, hint=("add a path, or write the steps without a fork",))


@rule("FLOW008", "flow")
def fork_path_has_steps(subject: Subject) -> Iterator[Hit]:
    for path, fork in forks(subject):
        for index, it in enumerate(fork.paths):
            if not it.steps:
                fact = f"the path {it.name} of the fork {fork.name} has no steps"
                yield Hit((*path, "paths", index), fact, hint=("add a step, or remove the path",))


@rule("FLOW009", "flow")
def loop_has_steps(subject: Subject) -> Iterator[Hit]:
    for path, loop in _loops(subject):
        if not loop.steps:
            fact = f"the loop {loop.name} has no steps, so nothing can change in it"
            yield Hit(path, fact, hint=("add the steps that are done again",))


@rule("FLOW010", "flow")
def loop_is_done_once(subject: Subject) -> Iterator[Hit]:
    for path, loop in _loops(subject):
        if loop.max_iterations < 1:
            fact = f"the loop {loop.name} is done at most {loop.max_iterations} times"
            yield Hit((*path, "max_iterations"), fact, hint=("write 1 or more",))


def _loops(subject: Subject) -> Iterator[tuple[Path, spec.Repeat]]:
    for it in placed_parts(subject):
        if isinstance(it.part, spec.Repeat):
            yield it.path, it.part


@rule("FLOW012", "flow")
def confidence_is_a_share(subject: Subject) -> Iterator[Hit]:
    for path, step in steps(subject):
        if step.confidence and not 0 <= step.confidence.minimum <= 1:
            fact = f"{step.name} must be sure by {step.confidence.minimum:g}, not by 0 to 1"
            yield Hit((*path, "confidence", "minimum"), fact, hint=("write a share such as 0.8",))


@rule("FLOW013", "flow")
def low_confidence_is_handled(subject: Subject) -> Iterator[Hit]:
    for path, step in steps(subject):
        if step.confidence and step.confidence.path is None:
            yield Hit(
                (*path, "confidence"),
                f"when {step.name} is not sure enough, the step fails",
                hint=("say what is done then: on_low_confidence, in files confidence.path",),
            )


@rule("FLOW014", "flow")
def step_is_tried(subject: Subject) -> Iterator[Hit]:
    for path, step in steps(subject):
        if step.retry is None:
            continue
        if not 1 <= step.retry.attempts <= _MOST_ATTEMPTS:
            fact = f"{step.name} is tried {step.retry.attempts} times in all"
            hint = f"write 1 to {_MOST_ATTEMPTS}: the first attempt counts"
            yield Hit((*path, "retry", "attempts"), fact, hint=(hint,))
        if not 0 <= step.retry.delay_seconds <= _YEAR:
            fact = (
                f"{step.name} waits {step.retry.delay_seconds:g} seconds before it is tried again"
            )
            hint = "write 0 or more, at most a year"
            yield Hit((*path, "retry", "delay_seconds"), fact, hint=(hint,))


@rule("FLOW015", "flow")
def there_is_time(subject: Subject) -> Iterator[Hit]:
    for path, what, seconds in _times(subject):
        if not 0 < seconds <= _YEAR:
            fact = f"{what} has {seconds:g} seconds"
            yield Hit(path, fact, hint=("write more than 0 and at most a year, or remove it",))


def _times(subject: Subject) -> Iterator[tuple[Path, str, float]]:
    for it in placed_parts(subject):
        match it.part:
            case spec.Step(name=name, timeout_seconds=float(seconds)):
                yield (*it.path, "timeout_seconds"), name, seconds
            case spec.Approval(name=name, timeout_seconds=seconds, escalate=others):
                yield (*it.path, "timeout_seconds"), name, seconds
                for index, other in enumerate(others):
                    path = (*it.path, "escalate", index, "timeout_seconds")
                    yield path, other.approver, other.timeout_seconds
            case _:
                pass


@rule("FLOW016", "flow")
def option_has_an_effect(subject: Subject) -> Iterator[Hit]:
    for path, fact, hint in (
        *_idle_paths(subject),
        *_idle_options(subject),
        *_idle_works(subject),
        *_idle_approvals(subject),
    ):
        yield Hit(path, fact, hint=(hint,))


def _idle_paths(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    for it in placed_parts(subject):
        if isinstance(it.part, spec.Path) and it.part.ends and "failure" in it.inside:
            fact = "after a failure path the run has failed in any case, so it cannot be completed"
            yield (*it.path, "ends"), fact, "remove complete() or ends"
        if isinstance(it.part, spec.Step) and it.part.compensate and "aside" in it.inside:
            fact = f"{it.part.name} is done after a failure, and nothing of that is undone"
            yield (*it.path, "compensate"), fact, "remove it, or do the step on the main line"
    undone = any(step.compensate for _, step in steps(subject))
    if flow_of(subject).compensate_on_cancel and not undone:
        fact = "when the run is stopped there is nothing to undo"
        yield ("flow", "compensate_on_cancel"), fact, "let a step say what undoes it: compensate"


def _idle_options(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    for path, step in steps(subject):
        retry, context = step.retry, step.context
        if retry and retry.attempts == 1:
            fact = f"{step.name} is tried once, as it is without a retry"
            yield (*path, "retry"), fact, "write 2 or more attempts, or remove the retry"
        if context and context.assembler and context.sources:
            fact = f"an assembler puts the context of {step.name} together, so this is not read"
            yield (*path, "context", "sources"), fact, "remove it, or remove the assembler"
        if context and context.options and not context.assembler:
            fact = f"the context of {step.name} has options, and no assembler that gets them"
            yield (*path, "context", "options"), fact, "name the assembler, or remove the options"
        elif context and not context.sources and not context.assembler:
            fact = f"the context of {step.name} has no sources, so nothing is shown"
            yield (*path, "context"), fact, "add a source or an assembler, or remove it"
    for path, step, source in sources(subject):
        if isinstance(source, HistoryIngredient) and isinstance(step.work, spec.FunctionWork):
            fact = f"{step.name} is done by a function, which was asked nothing and said nothing"
            yield path, fact, "remove the history, or let an agent do the step"


def _idle_works(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    for path, step, work in works(subject):
        if not isinstance(work, spec.AgentWork):
            continue
        if work.options and not work.step:
            fact = f"{step.name} has options, and no class that is made with them"
            yield (*path, "options"), fact, "name the class under step, or remove the options"
        for key in ("prompt", "output"):
            if work.step and getattr(work, key):
                fact = f"{work.step} writes the prompts of {step.name} and applies the reply"
                yield (*path, key), fact, f"remove {key}, or remove the class"


def _idle_approvals(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    for path, it in approvals(subject):
        if it.on_rejection and it.options and not any(one.rejects for one in it.options):
            fact = f"no answer to {it.name} rejects anything"
            yield (*path, "on_rejection"), fact, "let an option say rejects, or remove the path"
        if it.on_timeout and it.default is not None:
            fact = f'without an answer to {it.name}, "{it.default}" is used'
            yield (*path, "on_timeout"), fact, "remove the default, or remove the path"


@rule("FLOW017", "flow")
def fork_does_not_end_the_run(subject: Subject) -> Iterator[Hit]:
    for it in placed_parts(subject):
        # After a failure it has no effect, which FLOW016 reports.
        breaks_off = "fork" in it.inside and "failure" not in it.inside
        if isinstance(it.part, spec.Path) and it.part.ends and breaks_off:
            yield Hit(
                it.path,
                "a path inside a fork ends the run while the others are under way",
                hint=(
                    "let it go on to the join, and decide after that",
                    "a low-confidence path goes on with rejoin_main_flow()",
                ),
            )


def approvals(subject: Subject) -> Iterator[tuple[Path, spec.Approval]]:
    for it in placed_parts(subject):
        if isinstance(it.part, spec.Approval):
            yield it.path, it.part


@rule("FLOW025", "flow")
def approval_can_be_given(subject: Subject) -> Iterator[Hit]:
    for path, it in approvals(subject):
        names = [one.name for one in it.options]
        if not names:
            fact = f"{it.name} cannot be answered: it has no options"
            yield Hit((*path, "options"), fact, hint=("add options, or leave the key out",))
        elif all(one.rejects for one in it.options):
            fact = f"every answer to {it.name} rejects it"
            yield Hit((*path, "options"), fact, hint=("add an option that does not reject",))


@rule("NAME001", "flow")
def default_is_an_option(subject: Subject) -> Iterator[Hit]:
    for path, it in approvals(subject):
        names = [one.name for one in it.options]
        if names and it.default is not None and it.default not in names:
            reference = Reference(
                (*path, "default"), "", it.default, f"the default of {it.name} is"
            )
            yield unknown_name(reference, "option", names, f"write {' or '.join(names)}")


@rule("FLOW026", "flow")
def somebody_is_asked(subject: Subject) -> Iterator[Hit]:
    for path, it in approvals(subject):
        asked: list[tuple[Path, str]] = [((*path, "approver"), it.approver)]
        asked += [
            ((*path, "escalate", index, "approver"), other.approver)
            for index, other in enumerate(it.escalate)
        ]
        for place, name in asked:
            if not re.fullmatch(ADDRESSEE, name):
                fact = f'{it.name} has the invalid approver "{name}"'
                yield Hit(place, fact, hint=("write user:NAME, role:NAME or group:NAME",))


@rule("FLOW036", "flow")
def step_is_reached(subject: Subject) -> Iterator[Hit]:
    sequences: dict[Path, list[spec.Node]] = {}
    for it in placed_parts(subject):
        if not isinstance(it.part, spec.Path) and isinstance(it.path[-1], int):
            sequences.setdefault(it.path[:-1], []).append(it.part)
    for path, nodes in sequences.items():
        left = next((index for index, node in enumerate(nodes[:-1]) if _leaves(node)), None)
        if left is not None:
            yield _unreached((*path, left + 1), nodes[left + 1].name)
    flow = flow_of(subject)
    if flow.finally_ and any(map(_leaves, flow.steps)):
        yield _unreached(("flow", "finally"), flow.finally_.name)


def _unreached(path: Path, name: str) -> Hit:
    fact = f"{name} is never reached: every path before it ends the run"
    return Hit(path, fact, hint=("let one of the paths go on, or remove what follows",))


def _leaves(node: spec.Node) -> bool:
    """Tell whether nothing goes on after a node: what has no case fails."""
    match node:
        case spec.Branch(cases=cases, otherwise=otherwise):
            paths = [*(case.path for case in cases), *([otherwise] if otherwise else [])]
            return bool(paths) and all(it.ends or any(map(_leaves, it.steps)) for it in paths)
        case spec.Repeat(steps=inner):
            return any(map(_leaves, inner))
        case _:
            return False
