"""Assemblers as Python: one class for each step that declares what it is shown."""

from types import ModuleType

import pytest

from weft.errors import UsageError
from weft.packages.emit import assemblers
from weft.spec.workflow import WorkflowSpec


def spec(*contexts, state=None, **flow):
    """Declare a flow whose steps are shown something."""
    steps = [
        {"kind": "step", "name": name, "work": {"kind": "agent", "agent": "A"}, "context": context}
        for name, context in contexts
    ]
    declared = {"steps": steps, "state": state, **flow}
    return WorkflowSpec.model_validate(
        {"orchestrator": {"workflow_name": "Research"}, "flow": declared}
    )


def module(declared) -> ModuleType:
    made = ModuleType("emitted")
    exec(assemblers(declared), made.__dict__)
    return made


SEED = {
    "sources": [
        {"kind": "state", "path": "document_summary"},
        {"kind": "retrieval", "collection": "ResearchLibrary", "query_path": "analysis_query"},
        {"kind": "literal", "text": "Always cite sources."},
    ]
}


def test_the_class_of_a_step_reads_as_in_the_seed():
    text = assemblers(spec(("AnalyzeDocument", SEED), state="shop.models:DocumentState"))
    assert (
        text
        == '''"""What the steps of Research are shown, one class for each step.

Written by `weft emit assemblers Research`. To use one, name it as the `assembler`
of the step's context, in place of its sources.
"""

from shop.models import DocumentState
from weft.flow import AssembledContext, AssembledContextBuilder, StepContext
from weft.retrieval import Collection, VectorSearchAdapter


class ResearchLibrary(Collection):
    """The collection ResearchLibrary."""


class AnalyzeDocumentContextAssembler:
    """Shows the step AnalyzeDocument what it declares."""

    def __init__(
        self,
        research_library: VectorSearchAdapter[ResearchLibrary],
    ) -> None:
        self._research_library = research_library

    async def assemble(self, state: DocumentState, context: StepContext) -> AssembledContext:
        """Put the context together."""
        builder = AssembledContextBuilder()
        builder.add_state_context("document_summary", state.document_summary)
        results = await self._research_library.search(
            state.analysis_query,
            top_k=5,
            min_relevance=0.7,
        )
        builder.add_retrieval_context("ResearchLibrary", results)
        builder.add_literal_context("Always cite sources.")
        return builder.build()
'''
    )


def test_every_step_has_its_class_at_any_depth():
    path = {"kind": "step", "name": "c", "work": {"kind": "agent", "agent": "A"}, "context": SEED}
    made = module(spec(("a", SEED), ("a", SEED), on_failure={"steps": [path]}))
    names = [var for var in vars(made) if "ContextAssembler" in var]
    assert names == ["AContextAssembler", "AContextAssembler2", "CContextAssembler"]


def test_any_name_of_a_step_or_a_collection_becomes_one_of_python():
    def searching(*collections):
        return {
            "sources": [
                {"kind": "retrieval", "collection": collection, "query": "bees"}
                for collection in collections
            ]
        }

    names = ("old-papers", "Old Papers", "2020", "class", "state", "...", "FilterConfig")
    made = module(spec(('1st "step"\n', searching(*names)), ("é", searching())))
    kinds = [made.OldPapers, made.OldPapers2, made.Collection2020, made.Class, made.State]
    kinds += [made.Collection2, made.FilterConfig2]
    assert [kind.collection_name() for kind in kinds] == list(names)
    parameters = made.Step1stStepContextAssembler.__init__.__annotations__
    assert list(parameters)[:-1] == [
        "old_papers", "old_papers_", "in_2020_", "class_", "state_", "collection", "filter_config",
    ]  # fmt: skip
    assert made.StepContextAssembler


def test_local_objects_are_not_imported():
    text = assemblers(spec(("a", SEED), state="local:Doc"))
    assert "state: Any" in text
    assert "from typing import Any" in text


@pytest.mark.parametrize(
    ("state", "path", "read"),
    [
        (None, "topic", "state.topic"),
        (None, "items", 'state_value(state, "items")'),
        ("shop.models:Shop", "items", "state.items"),
        ("shop.models:Shop", "class", 'state_value(state, "class")'),
        ("shop.models:Shop", "author.name", 'state_value(state, "author.name")'),
    ],
)
def test_fields_are_read_as_attributes_where_that_is_what_they_are(state, path, read):
    text = assemblers(spec(("a", {"sources": [{"kind": "state", "path": path}]}), state=state))
    assert f'builder.add_state_context("{path}", {read})' in text


def test_a_class_inside_another_is_imported_with_it():
    text = assemblers(spec(("a", SEED), state="shop.models:Shop.State"))
    assert "from shop.models import Shop\n" in text
    assert "state: Shop.State" in text


def test_earlier_messages_of_agents_are_left_to_their_runs():
    text = assemblers(spec(("a", {"sources": [{"kind": "history"}]})))
    assert "        # What the agent has said before is added by its run.\n" in text


@pytest.mark.parametrize(
    "declared",
    [
        WorkflowSpec.model_validate({"orchestrator": {"workflow_name": "Research"}}),
        spec(("a", None)),
        spec(("a", {"assembler": "shop.contexts:Own"})),
    ],
)
def test_a_flow_without_declared_contexts_is_refused(declared):
    with pytest.raises(UsageError, match="no step of Research declares a context"):
        assemblers(declared)
