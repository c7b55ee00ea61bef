"""Comparing meanings: what a workflow needs for it, and which rule a message is nearest to."""

from weft.context.history import conversation
from weft.context.similarity import GET_EMBEDDINGS, NO_EMBEDDINGS, Similarity
from weft.engine.commands import Judge
from weft.engine.conversation.routing import compared_with, nearest_rule
from weft.engine.events import ConditionJudged
from weft.engine.state import State
from weft.errors import RetrievalError, RunError, SetupError
from weft.runtime.models.consulting import worded
from weft.runtime.workflow import Workflow


def require_embeddings(workflow: Workflow, similarity: Similarity | None) -> None:
    """Raise SetupError if a workflow compares meanings and nothing here can."""
    if not workflow.compares:
        return
    if similarity is None:
        raise SetupError(
            f"{workflow.name}: {workflow.compares}, and {NO_EMBEDDINGS}", hint=GET_EMBEDDINGS
        )
    _ = similarity.name  # What is missing for it is said now.


async def compare(
    similarity: Similarity | None, workflow: Workflow, state: State, command: Judge
) -> ConditionJudged:
    """Compare what was said with the descriptions of all nearest rules that are asked together."""
    if similarity is None:  # It is not the run's fault: it goes on where embeddings are.
        raise RunError(f"{NO_EMBEDDINGS}; {GET_EMBEDDINGS}")
    rules = compared_with(workflow.compiled.routing, command.agent, command.rule)
    handoffs = workflow.spec.handoffs
    words = [worded(workflow, state, command.agent, handoffs[it].condition or "") for it in rules]
    try:
        scores = await similarity.of(_said(state), words)
        model = similarity.name
    except RetrievalError as error:
        return ConditionJudged(command.rule, holds=False, text="", fault=str(error))
    nearest = nearest_rule(workflow.compiled.routing, dict(zip(rules, scores, strict=True)))
    return ConditionJudged(
        command.rule,
        holds=nearest == command.rule,
        text="",
        model=model,
        scores={str(rule): score for rule, score in zip(rules, scores, strict=True)},
    )


def _said(state: State) -> str:
    """Return the last words of the user; where a user has said nothing, those of an agent."""
    said = conversation(state.messages)
    own = (it for it in reversed(said) if "name" not in it)
    last = next(own, said[-1] if said else None)
    return "" if last is None else str(last["content"])
