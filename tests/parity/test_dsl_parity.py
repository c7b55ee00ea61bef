"""Nothing that a builder offers may be inert: every method and option is used by a named test."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import weft.flow
from weft.dsl.flow_step import Steps

FILE = Path(__file__).parents[1] / "unit" / "dsl" / "test_flow_builder.py"

#: Classes whose methods people call; what a class inherits from Steps is listed there.
BUILDERS = (
    Steps,
    weft.flow.Workflow,
    weft.flow.Path,
    weft.flow.LowConfidencePath,
    weft.flow.ForkPath,
    weft.flow.StepOptions,
    weft.flow.ContextBuilder,
    weft.flow.RetrievalBuilder,
    weft.flow.ApprovalBuilder,
)
#: What the builders call of each other, and what runs ask for.
INSIDE = {"declared", "nodes", "ends", "objects", "state_type"}
#: Options that are written without their name.
POSITIONAL = {"configure", "message"}

PROOFS = {
    "Steps.then": "test_start_with_then_and_finally_do_steps_in_order",
    "Steps.then.configure": "test_with_context_shows_pieces_in_order",
    "Steps.then.name": "test_one_step_may_occur_several_times_under_different_names",
    "Steps.branch": "test_branch_takes_one_of_several_paths",
    "Steps.branch.otherwise": "test_branch_takes_one_of_several_paths",
    "Steps.branch.name": "test_branch_takes_one_of_several_paths",
    "Steps.fork": "test_fork_goes_side_by_side_and_join_follows",
    "Steps.fork.name": "test_fork_goes_side_by_side_and_join_follows",
    "Steps.join": "test_fork_goes_side_by_side_and_join_follows",
    "Steps.join.configure": "test_fork_goes_side_by_side_and_join_follows",
    "Steps.join.name": "test_one_step_may_occur_several_times_under_different_names",
    "Steps.repeat_until": "test_repeat_until_does_steps_again",
    "Steps.repeat_until.max_iterations": "test_repeat_until_does_steps_again",
    "Steps.await_approval": "test_await_approval_asks_a_person",
    "Steps.await_approval.configure": "test_await_approval_asks_a_person",
    "Steps.await_approval.name": "test_await_approval_asks_a_person",
    "Workflow.create": "test_one_step_may_occur_several_times_under_different_names",
    "Workflow.create.description": "test_create_names_the_workflow_and_its_state",
    "Workflow.start_with": "test_one_step_may_occur_several_times_under_different_names",
    "Workflow.start_with.configure": "test_one_step_may_occur_several_times_under_different_names",
    "Workflow.start_with.name": "test_one_step_may_occur_several_times_under_different_names",
    "Workflow.on_failure": "test_on_failure_of_the_workflow_and_compensate_on_cancel",
    "Workflow.finally_": "test_start_with_then_and_finally_do_steps_in_order",
    "Workflow.finally_.configure": "test_one_step_may_occur_several_times_under_different_names",
    "Workflow.finally_.name": "test_start_with_then_and_finally_do_steps_in_order",
    "Workflow.compensate_on_cancel": "test_on_failure_of_the_workflow_and_compensate_on_cancel",
    "Workflow.agent": "test_a_declared_agent_does_a_step",
    "Workflow.agent.prompt": "test_a_declared_agent_does_a_step",
    "Workflow.agent.description": "test_a_declared_agent_does_a_step",
    "Workflow.agent.model": "test_a_declared_agent_does_a_step",
    "Workflow.agent.tools": "test_a_declared_agent_does_a_step",
    "Workflow.agent.output_type": "test_a_declared_agent_does_a_step",
    "Workflow.variables": "test_with_context_shows_pieces_in_order",
    "Workflow.findings": "test_build_raises_all_errors_at_once_and_keeps_warnings",
    "Workflow.build": "test_build_raises_all_errors_at_once_and_keeps_warnings",
    "Workflow.save": "test_code_and_files_say_the_same",
    "Path.complete": "test_branch_takes_one_of_several_paths",
    "LowConfidencePath.rejoin_main_flow": "test_confidence_ends_or_rejoins",
    "ForkPath.on_failure": "test_fork_goes_side_by_side_and_join_follows",
    "StepOptions.with_context": "test_with_context_shows_pieces_in_order",
    "StepOptions.with_retry": "test_retry_and_timeout",
    "StepOptions.with_retry.delay": "test_retry_and_timeout",
    "StepOptions.with_timeout": "test_retry_and_timeout",
    "StepOptions.require_confidence": "test_confidence_ends_or_rejoins",
    "StepOptions.on_low_confidence": "test_confidence_ends_or_rejoins",
    "StepOptions.compensate": "test_compensate_on_failure_and_validate_state",
    "StepOptions.on_failure": "test_compensate_on_failure_and_validate_state",
    "StepOptions.validate_state": "test_compensate_on_failure_and_validate_state",
    "StepOptions.validate_state.message": "test_compensate_on_failure_and_validate_state",
    "ContextBuilder.from_state": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.from_retrieval": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.from_board": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.from_board.filters": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.from_board.limit": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.from_variable": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.from_literal": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.from_literal.max_tokens": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.from_history": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.from_history.max_messages": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.from_history.max_tokens": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.formatted": "test_with_context_shows_pieces_in_order",
    "ContextBuilder.assembled_by": "test_a_context_may_be_assembled_by_an_object",
    "RetrievalBuilder.query": "test_with_context_shows_pieces_in_order",
    "RetrievalBuilder.top_k": "test_with_context_shows_pieces_in_order",
    "RetrievalBuilder.min_relevance": "test_with_context_shows_pieces_in_order",
    "RetrievalBuilder.filter": "test_with_context_shows_pieces_in_order",
    "ApprovalBuilder.text": "test_await_approval_asks_a_person",
    "ApprovalBuilder.option": "test_await_approval_asks_a_person",
    "ApprovalBuilder.option.rejects": "test_await_approval_asks_a_person",
    "ApprovalBuilder.default": "test_await_approval_asks_a_person",
    "ApprovalBuilder.timeout": "test_await_approval_asks_a_person",
    "ApprovalBuilder.escalate_to": "test_await_approval_asks_a_person",
    "ApprovalBuilder.escalate_to.timeout": "test_await_approval_asks_a_person",
    "ApprovalBuilder.on_timeout": "test_await_approval_asks_a_person",
    "ApprovalBuilder.on_rejection": "test_await_approval_asks_a_person",
    "ApprovalBuilder.into": "test_await_approval_asks_a_person",
    "agent": "test_a_declared_agent_does_a_step",
    "agent.prompt": "test_a_declared_agent_does_a_step",
    "agent.output": "test_a_declared_agent_does_a_step",
}


def own_names(builder: type):
    """Yield what a builder offers beside those that are listed themselves."""
    for base in builder.__mro__:
        listed = base in BUILDERS and base is not builder
        if not listed and base.__module__.startswith("weft.") and not base.__name__.startswith("_"):
            yield from (var for var in vars(base) if not var.startswith("_") and var not in INSIDE)


def offered():
    """Yield every method of every builder, and every option of each."""
    yield from with_options("agent", weft.flow.agent)
    for builder in BUILDERS:
        for name in own_names(builder):
            yield from with_options(f"{builder.__name__}.{name}", getattr(builder, name))


def with_options(name: str, member: object):
    yield name
    if callable(member):
        for parameter in inspect.signature(member).parameters.values():
            if parameter.default is not parameter.empty:
                yield f"{name}.{parameter.name}"


@cache
def sources() -> dict[str, str]:
    text = FILE.read_text()
    tree = ast.parse(text)
    return {
        node.name: ast.get_source_segment(text, node) or ""
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_method_and_option_is_listed_and_nothing_else():
    assert set(offered()) == set(PROOFS)


@pytest.mark.parametrize("name", PROOFS)
def test_every_method_and_option_is_used_by_its_test(name):
    source = sources()[PROOFS[name]]
    method, option = parts_of(name)
    assert re.search(rf"\b{method}\b", source)
    assert not option or option in POSITIONAL or f"{option}=" in source


def parts_of(name: str) -> tuple[str, str]:
    """Return the method or function, and the option if it is one."""
    steps = name.split(".") if name.startswith("agent") else name.split(".")[1:]
    return steps[0], steps[1] if len(steps) > 1 else ""
