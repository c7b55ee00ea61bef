"""Everything that takes several names refuses one text, whose characters are not the names."""

import asyncio

import pytest
from pydantic import BaseModel, ValidationError

from weft import Scope
from weft.board import (
    Board,
    EmptyProvider,
    FilterConfig,
    FilteredContextProvider,
    LabelledVisibility,
    PrivateVisibility,
    RedactingProvider,
    TagFilter,
)
from weft.errors import UsageError
from weft.retrieval import open_collections
from weft.spec.part import name_list


class Order(BaseModel):
    number: int


def agent():
    return Board().agent("clerk")


@pytest.mark.parametrize(
    "given",
    [
        lambda: RedactingProvider(EmptyProvider(), drop="ssn"),
        lambda: FilteredContextProvider(include_state_keys="mood"),
        lambda: FilterConfig(types="Order"),
        lambda: FilterConfig(producers="clerk"),
        lambda: TagFilter(include="urgent"),
        lambda: PrivateVisibility(agents="clerk"),
        lambda: LabelledVisibility(labels="medical"),
        lambda: agent().with_context_filter(include_state_keys="mood"),
        lambda: agent().consumes(Order, tags="urgent"),
        lambda: agent().consumes(Order, from_agents="clerk"),
        lambda: agent().publishes(Order, tags="urgent"),
        lambda: Scope("app", "ada", roles="manager"),
        lambda: Scope("app", "ada", groups="finance"),
    ],
)
def test_text_in_place_of_names_is_refused(given):
    with pytest.raises((UsageError, ValidationError, ValueError), match="expected a list"):
        given()


def test_text_in_place_of_paths_is_refused(tmp_path):
    async def add():
        async with open_collections(tmp_path) as collections:
            await collections.add("Library", "papers")

    with pytest.raises(UsageError, match="expected a list of names"):
        asyncio.run(add())


def test_sets_are_sorted_and_lists_keep_their_order():
    assert name_list({"b", "a"}) == ("a", "b")
    assert name_list(["b", "a"]) == ("b", "a")
    assert FilterConfig(types={"B", "A"}).types == ("A", "B")
