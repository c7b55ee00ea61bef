"""Family FLOW: the order of steps, options without effect, branches, reading and setting."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, cast

from weft.check.answer_schema import UnknownKey
from weft.check.declarations import bound_model
from weft.check.flow_parts import NODES, inside, sources, state_fields, type_at, works
from weft.check.parts import owned, parts_of, placed_parts
from weft.check.rules.comparisons import instead, kinds_of
from weft.check.rules.references import Reference, unknown_field, unknown_name
from weft.check.spelling import agent_meant, listed, short
from weft.check.subject import FLOW, Hit, Subject, rule
from weft.check.texts import (
    FLOW_TEMPLATES,
    FLOW_TESTS,
    Mention,
    inserted,
    parsed_conditions,
    templates,
    tested,
)
from weft.check.values import format_value, key_of, value_error
from weft.findings import Path
from weft.spec import flow as spec
from weft.spec.agents import HistoryIngredient
from weft.spec.conditions import Name
from weft.spec.type_meaning import finite_values
from weft.spec.types import ANY, Scalar, TypeExpr, print_type


def _nodes(subject: Subject) -> Iterator[tuple[Path, spec.Node]]:
    return cast("Iterator[tuple[Path, spec.Node]]", parts_of(subject, *NODES))


@rule("FLOW003", "flow", modes=FLOW)
def there_are_steps(subject: Subject) -> Iterator[Hit]:
    if subject.spec.flow and not subject.spec.flow.steps:
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
    yield "step", [((*path, "name"), node.name) for path, node in _nodes(subject)]
    for path, fork in parts_of(subject, spec.Fork):
        paths = [
            ((*path, "paths", n, "name"), fork_path.name) for n, fork_path in enumerate(fork.paths)
        ]
        yield f"path of the fork {fork.name}", paths
    for path, approval in parts_of(subject, spec.Approval):
        options = [((*path, "options"), option.name) for option in approval.options]
        yield f"option of {approval.name}", options
    for path, branch in parts_of(subject, spec.Branch):
        values = [
            ((*path, "cases", n, "value"), key_of(case.value))
            for n, case in enumerate(branch.cases)
        ]
        yield f"case of the branch {branch.name}", values
    for path, step, source in sources(subject):
        if isinstance(source, spec.RetrievalIngredient):
            keys = [((*path, "filters", n, "key"), one.key) for n, one in enumerate(source.filters)]
            yield f"filter in the retrieval of {step.name}", keys


@rule("FLOW006", "flow")
def fork_has_a_join(subject: Subject) -> Iterator[Hit]:
    for path, fork in parts_of(subject, spec.Fork):
        if fork.join is None:
            fact = f"the paths of the fork {fork.name} never come together"
            yield Hit(path, fact, hint=("add the step that joins them: join",))


@rule("FLOW013", "flow")
def low_confidence_is_handled(subject: Subject) -> Iterator[Hit]:
    for path, step in parts_of(subject, spec.Step):
        if step.confidence and step.confidence.path is None:
            yield Hit(
                (*path, "confidence"),
                f"when {step.name} is not sure enough, the step fails",
                hint=("add a path for this case: on_low_confidence, in files confidence.path",),
            )


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
    for path, part in parts_of(subject, spec.Path):
        if part.ends and "failure" in inside(path):
            fact = "after a failure path the run has failed in any case, so it cannot be completed"
            yield (*path, "ends"), fact, "remove complete() or ends"
    undone = [(path, step) for path, step in parts_of(subject, spec.Step) if step.compensate]
    for path, step in undone:
        if "aside" in inside(path):
            fact = f"{step.name} is done after a failure, and nothing of that is undone"
            yield (*path, "compensate"), fact, "remove it, or do the step on the main line"
    for path, flow in parts_of(subject, spec.Flow):
        if flow.compensate_on_cancel and not undone:
            fact = "when the run is stopped there is nothing to undo"
            hint = "let a step say what undoes it: compensate"
            yield (*path, "compensate_on_cancel"), fact, hint


def _idle_options(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    for path, step in parts_of(subject, spec.Step):
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
            fact = f"{step.name} has options, but no class to create with them"
            yield (*path, "options"), fact, "name the class under step, or remove the options"
        for key in ("prompt", "output"):
            if work.step and getattr(work, key):
                fact = f"{work.step} writes the prompts of {step.name} and applies the reply"
                yield (*path, key), fact, f"remove {key}, or remove the class"


def _idle_approvals(subject: Subject) -> Iterator[tuple[Path, str, str]]:
    for path, approval in parts_of(subject, spec.Approval):
        if approval.on_rejection and not any(one.rejects for one in approval.options):
            fact = f"no answer to {approval.name} rejects anything"
            yield (*path, "on_rejection"), fact, "let an option say rejects, or remove the path"
        if approval.on_timeout and approval.default is not None:
            fact = f'without an answer to {approval.name}, "{approval.default}" is used'
            yield (*path, "on_timeout"), fact, "remove the default, or remove the path"


@rule("FLOW017", "flow")
def fork_does_not_end_the_run(subject: Subject) -> Iterator[Hit]:
    for path, part in parts_of(subject, spec.Path):
        # After a failure it has no effect; FLOW016 reports that.
        if part.ends and "fork" in inside(path) and "failure" not in inside(path):
            yield Hit(
                path,
                "a path inside a fork ends the run while the others are under way",
                hint=(
                    "let it continue to the join, and decide after that",
                    "a low-confidence path continues with rejoin_main_flow()",
                ),
            )


@rule("FLOW025", "flow")
def approval_can_be_given(subject: Subject) -> Iterator[Hit]:
    for path, approval in parts_of(subject, spec.Approval):
        if all(one.rejects for one in approval.options):
            fact = f"every answer to {approval.name} rejects it"
            yield Hit((*path, "options"), fact, hint=("add an option that does not reject",))


@rule("NAME001", "flow")
def default_is_an_option(subject: Subject) -> Iterator[Hit]:
    for path, approval in parts_of(subject, spec.Approval):
        names = [one.name for one in approval.options]
        if approval.default is not None and approval.default not in names:
            reference = Reference(
                (*path, "default"), "", approval.default, f"the default of {approval.name} is"
            )
            yield unknown_name(reference, "option", names, f"write {' or '.join(names)}")


@rule("FLOW036", "flow")
def step_is_reached(subject: Subject) -> Iterator[Hit]:
    sequences: dict[Path, list[spec.Node]] = {}
    for path, node in _nodes(subject):
        if isinstance(path[-1], int):
            sequences.setdefault(path[:-1], []).append(node)
    for path, nodes in sequences.items():
        left = next((index for index, node in enumerate(nodes[:-1]) if _leaves(node)), None)
        if left is not None:
            yield _unreached((*path, left + 1), nodes[left + 1].name)
    for path, flow in parts_of(subject, spec.Flow):
        if flow.finally_ and any(map(_leaves, flow.steps)):
            yield _unreached((*path, "finally"), flow.finally_.name)


def _unreached(path: Path, name: str) -> Hit:
    fact = f"{name} is never reached: every path before it ends the run"
    return Hit(
        path, fact, hint=("let one of the paths continue, or remove the steps after the branch",)
    )


def _leaves(node: spec.Node) -> bool:
    """Return whether every way through a node ends the run; a value without a case fails."""
    match node:
        case spec.Branch(cases=cases, otherwise=otherwise):
            paths = [*(case.path for case in cases), *([otherwise] if otherwise else [])]
            return bool(paths) and all(path.ends or any(map(_leaves, path.steps)) for path in paths)
        case spec.Repeat(steps=inner):
            return any(map(_leaves, inner))
        case _:
            return False


_BOOL: Final = Scalar("bool")
#: Braces around a part of a value: a template inserts whole variables only.
_PART: Final = re.compile(r"(?<!\{)\{([A-Za-z_]\w*(?:\.\w+)+)\}(?!\})")


@rule("COND002", "flow", "variables", "models")
def tested_field_exists(subject: Subject) -> Iterator[Hit]:
    return _unknown_fields(subject, tested(subject, *FLOW_TESTS), " tests")


@rule("NAME001", "flow", "variables", "models")
def field_exists(subject: Subject) -> Iterator[Hit]:
    yield from _unknown_fields(subject, (*_read(subject), *_set(subject)))
    yield from _unknown_fields(subject, inserted(subject, *FLOW_TEMPLATES), " inserts")


def _unknown_fields(subject: Subject, uses: Iterable[Mention], verb: str = "") -> Iterator[Hit]:
    for use in uses:
        found = type_at(subject, use.name)
        if isinstance(found, UnknownKey):
            what = f"{use.what}{verb}"
            known = found.known if found.offset else state_fields(subject)
            what = f"{what} {use.name}," if found.offset else what
            yield unknown_field(use.path, what, found, offset=use.offset or 0, known=known)


@rule("FLOW019", "flow", "variables", "models")
def field_can_be_used(subject: Subject) -> Iterator[Hit]:
    fields = state_fields(subject)
    whole = set(_set(subject))
    for use in (*_read(subject), *whole):
        first = use.name.partition(".")[0]
        if isinstance(type_at(subject, use.name), UnknownKey):
            continue
        if first not in fields:
            message = f'{use.what} "{use.name}", which is not a field of the state'
            yield use.hit(message, "use a field of the state: a derived variable")
        elif use in whole and first != use.name:
            message = f'{use.what} "{use.name}", but only whole fields can be set'
            yield use.hit(message, f"set {first}, or write a function as the step")
    yield from _parts_inserted(subject)


def _read(subject: Subject) -> Iterator[Mention]:
    kinds = (spec.StateIngredient, spec.RetrievalIngredient, spec.RetrievalFilter)
    for path, step, part in owned(subject, spec.Step, *kinds):
        key = "query_path" if isinstance(part, spec.RetrievalIngredient) else "path"
        if name := getattr(part, key):
            what = f"the context of {step.name} reads"
            yield Mention(name, (*path, key), None, what, step.name)


def _set(subject: Subject) -> Iterator[Mention]:
    for placed in placed_parts(subject, spec.AgentWork, spec.Approval):
        owner = placed.part if isinstance(placed.part, spec.Approval) else placed.inside(spec.Step)
        if placed.part.output and owner:
            what = f"{owner.name} sets"
            yield Mention(placed.part.output, placed.at("output"), None, what, owner.name)


def _parts_inserted(subject: Subject) -> Iterator[Hit]:
    for placed in templates(subject, *FLOW_TEMPLATES):
        for found in _PART.finditer(placed.text):
            if found[1].partition(".")[0] in subject.variable_names:
                yield Hit(
                    placed.path,
                    f'{placed.what} inserts "{found[1]}", and only whole fields can be inserted',
                    hint=("let a step copy it into a field of its own, and insert that field",),
                    offset=found.start(1),
                    length=len(found[1]),
                )


@rule("COND003", "flow", "variables", "models")
def case_can_come(subject: Subject) -> Iterator[Hit]:
    for path, branch, type_ in _typed_branches(subject):
        for index, case in enumerate(branch.cases):
            if _never_comes(subject, case, type_):
                yield Hit(
                    (*path, "cases", index, "value"),
                    f"{branch.on} is never {format_value('', case.value)},"
                    " so this case never applies",
                    hint=_meant(type_, case.value),
                )


def _never_comes(subject: Subject, case: spec.Case, type_: TypeExpr) -> bool:
    # Null also means "no value yet".
    return case.value is not None and value_error(type_, case.value, subject.models) is not None


def _meant(type_: TypeExpr, value: object) -> tuple[str, ...]:
    scalar = value if isinstance(value, str | int | float) else None
    return instead(type_, scalar) or ("write a value of its type, or remove the case",)


@rule("FLOW024", "flow", "variables", "models")
def every_value_has_a_case(subject: Subject) -> Iterator[Hit]:
    for path, branch, type_ in _typed_branches(subject):
        all_values = finite_values(type_)
        wrong = any(_never_comes(subject, case, type_) for case in branch.cases)
        if branch.otherwise is not None or all_values is None or wrong:
            continue
        met = {key_of(case.value) for case in branch.cases}
        left = [format_value("", value) for value in all_values if key_of(value) not in met]
        if left:
            fact = f"the branch {branch.name} has no case for {listed(left)}: the run fails then"
            yield Hit(path, fact, hint=("add the case, or an otherwise path",))


def _typed_branches(subject: Subject) -> Iterator[tuple[Path, spec.Branch, TypeExpr]]:
    for placed, condition in parsed_conditions(subject, spec.Branch):
        found = type_at(subject, condition.name) if isinstance(condition, Name) else _BOOL
        if not isinstance(found, UnknownKey):
            yield placed.path[:-1], placed.part, found


@rule("FLOW028", "flow", "orchestrator")
def source_is_there(subject: Subject) -> Iterator[Hit]:
    own = subject.spec.orchestrator.workflow_name
    for path, step, source in owned(subject, spec.Step, spec.ArtifactsIngredient):
        if source.board == own:
            fact = f"the context of {step.name} reads the board of {own}, which is a flow"
            yield Hit((*path, "board"), fact, hint=("name a workflow that is a board",))
    for path, step in parts_of(subject, spec.Step):
        template = step.context.format.template if step.context else None
        if template is not None and "{context}" not in template:
            fact = f"the template of {step.name} has no place for the context"
            place = (*path, "context", "format", "template")
            yield Hit(place, fact, hint=("write {context} where the context belongs",))


@rule("FLOW029", "flow", "agents", "registry", "variables", "models")
def reply_sets_something(subject: Subject) -> Iterator[Hit]:
    fields = state_fields(subject)
    for path, step in parts_of(subject, spec.Step):
        work = step.work
        if not isinstance(work, spec.AgentWork) or work.output or work.step:
            continue
        model = bound_model(subject, work.agent)
        if work.agent not in subject.agents or (model and model not in subject.models):
            continue
        known = subject.models.get(model or "", {})
        if not model or not set(known).intersection(fields):
            what = f"no field of {model} is one of the state" if model else "it is free text"
            yield Hit(
                (*path, "work"),
                f"the reply of {work.agent} changes nothing in the state: {what}",
                hint=("say under output which field gets the reply",),
            )


@rule("NAME003", "flow", "agents", modes=FLOW)
def agent_has_a_step(subject: Subject) -> Iterator[Hit]:
    busy = {agent_meant(subject, work.agent) for _, work in parts_of(subject, spec.AgentWork)}
    for index, agent in enumerate(subject.spec.agents):
        if agent.agent_name not in busy:
            fact = f"{agent.agent_name} is never used: it does no step of the flow"
            place = ("agents", index, "agent_name")
            yield Hit(place, fact, hint=("let it do a step, or remove it",))


@rule("FLOW035", "flow", "agents", "registry", "variables", "models")
def what_is_set_fits(subject: Subject) -> Iterator[Hit]:
    for path, work in parts_of(subject, spec.AgentWork):
        if work.output and work.agent in subject.agents:
            model = bound_model(subject, work.agent)
            wanted, given = ("object", f"a {model}") if model else ("text", "text")
            type_ = type_at(subject, work.output)
            if not isinstance(type_, UnknownKey) and wanted not in kinds_of(type_):
                fact = f"{work.agent} replies with {given}, and {work.output} is"
                yield _unfit((*path, "output"), fact, type_)
    for path, approval in parts_of(subject, spec.Approval):
        type_ = type_at(subject, approval.output) if approval.output else ANY
        unfit = [
            one.name
            for one in approval.options
            if not isinstance(type_, UnknownKey) and value_error(type_, one.name, subject.models)
        ]
        if unfit and not isinstance(type_, UnknownKey):
            yield _unfit(
                (*path, "output"),
                f"{approval.name} sets {listed(unfit)}, and {approval.output} is",
                type_,
            )


def _unfit(path: Path, fact: str, type_: TypeExpr) -> Hit:
    hint = "name another field, or change its type"
    return Hit(path, f"{fact} {short(print_type(type_))}", hint=(hint,))
