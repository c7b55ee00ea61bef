"""Family OUT."""

from itertools import pairwise
from typing import Any

import pytest

from unit.check.builders_code import agent, codes, derived, hits, model, only, subject
from weft.findings import Remove, SetValue


def bound(*models: dict[str, Any], **more: Any):
    """Models of which the first is bound, so that it and what it contains are in use."""
    registry = [{"agent": "RouterAgent", "model": models[0]["name"]}]
    return subject(models=models, **{"registry": registry, **more})


def test_OUT001_unknown_model_in_a_variable():
    checked = bound(model("Ticket"), variables={"x": derived("optional[Tickt]")})
    hit = only("OUT001", checked)
    assert hit.path == ("variables", "x", "type")
    assert hit.message == 'the type of the variable x refers to "Tickt", which is no model'
    assert hit.hint == ('did you mean "Ticket"?',)
    assert hit.fix is None
    assert codes(checked) == ["OUT001"]


def test_OUT001_unknown_model_in_a_field():
    hit = only("OUT001", bound(model("Ticket", items="list[TicketItem]"), model("Ticketitem")))
    assert hit.path == ("models", 0, "fields", "items", "type")
    assert "Ticket.items" in hit.message
    assert hit.fix is None


def test_OUT001_mends_another_spelling_that_stands_alone():
    checked = bound(model("Ticket", item="TicketItem"), model("Ticketitem"))
    fix = only("OUT001", checked).fix
    assert fix is not None
    assert fix.edits == (SetValue(("models", 0, "fields", "item", "type"), "Ticketitem"),)
    assert codes(checked) == ["OUT001"]


def test_OUT001_unknown_model_in_a_document():
    source = {"type": "entity", "collection": "c", "search_by": "user_id"}
    source["schema"] = {"line": {"type": "dict[Line]"}, "note": {"type": "str"}}
    hit = only("OUT001", subject(variables={"x": {"type": "dict", "source": source}}))
    assert hit.path == ("variables", "x", "source", "schema", "line", "type")
    assert hit.hint == ("declare the model Line in structured_outputs, or use another type",)


def test_OUT001_unknown_model_of_the_start_form():
    checked = subject(orchestrator={"trigger": {"type": "form_submit", "form": "Order"}})
    hit = only("OUT001", checked)
    assert hit.path == ("orchestrator", "trigger", "form")
    assert "the form that starts a run" in hit.message


@pytest.mark.parametrize("trigger", [{"type": "chat"}, {"type": "form_submit"}])
def test_OUT001_known_models(trigger: dict[str, Any]):
    checked = bound(
        model("Ticket", items="list[Item | str]", note='literal["Gone"]'),
        model("Item", n="int"),
        variables={"x": derived("optional[Ticket]")},
        orchestrator={"trigger": trigger},
    )
    assert codes(checked) == []


def test_OUT002_bound_to_no_model():
    checked = subject(
        models=[model("TicketSummary")],
        registry=[{"agent": "RouterAgent", "model": "ticket_summary"}],
    )
    hit = only("OUT002", checked)
    assert hit.path == ("registry", 0, "model")
    assert hit.message == 'RouterAgent is bound to "ticket_summary", which is no model'
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(("registry", 0, "model"), "TicketSummary"),)
    assert codes(checked) == ["OUT002"]


def test_OUT002_bound_to_a_model_or_to_none():
    registry = [{"agent": "RouterAgent", "model": "Ticket"}, {"agent": "B", "model": None}]
    assert hits("OUT002", subject(models=[model("Ticket")], registry=registry)) == []


def test_OUT003_model_that_nothing_uses():
    checked = bound(model("Ticket"), model("Old", part="Inner"), model("Inner", deep="list[Deep]"))
    hit = only("OUT003", checked)
    assert hit.path == ("models", 1, "name")
    assert hit.message == "nothing uses the model Old"


def test_OUT003_models_that_only_use_each_other_are_reported_once():
    models = [model("A", b="list[B]"), model("B", a="list[A]"), model("C", c="list[C]")]
    assert [hit.path for hit in hits("OUT003", subject(models=models))] == [
        ("models", 2, "name"),
        ("models", 0, "name"),
    ]


def test_OUT003_every_way_to_be_used():
    source = {"type": "entity", "collection": "c", "search_by": "user_id"}
    source["schema"] = {"line": {"type": "list[D]"}}
    checked = bound(
        model("A", part="B"),
        *(model(name) for name in "BCDEF"),
        variables={"x": derived("C"), "y": {"type": "dict", "source": source}},
        orchestrator={"trigger": {"type": "form_submit", "form": "E"}},
        board={"artifacts": ["F"]},
    )
    assert hits("OUT003", checked) == []


def test_OUT004_agent_bound_twice():
    registry = [{"agent": "RouterAgent", "model": name} for name in ("A", "B")]
    hit = only("OUT004", subject(models=[model("A"), model("B")], registry=registry))
    assert hit.path == ("registry", 1, "agent")
    assert hit.message == "RouterAgent is bound twice"
    assert hit.cause == ("first to A, then to B",)
    assert hit.fix is None


def test_OUT004_mends_an_exact_repetition():
    hit = only("OUT004", subject(registry=[{"agent": "RouterAgent", "model": None}] * 2))
    assert hit.fix is not None
    assert hit.fix.edits == (Remove(("registry", 1)),)


def test_OUT004_two_agents_may_share_a_model():
    registry = [{"agent": name, "model": "A"} for name in ("RouterAgent", "Clerk")]
    agents = [agent("RouterAgent"), agent("Clerk")]
    assert codes(subject(agents=agents, models=[model("A")], registry=registry)) == []


def test_OUT005_model_contains_itself():
    checked = bound(model("Node", left="Node", right="Node | Node2", text="str"))
    hit = only("OUT005", checked)
    assert hit.path == ("models", 0, "fields", "left", "type")
    assert hit.message == "Node contains itself without end, through left"
    assert hit.hint == ("write optional[Node] or list[Node]",)
    assert hit.cause == ()


def test_OUT005_names_every_field_on_the_way():
    hit = only("OUT005", bound(model("Node", left="Node", right="Node")))
    assert "through left and right" in hit.message


def test_OUT005_models_contain_each_other():
    checked = bound(
        model("Root", a="A"),
        model("A", n="int", b="B"),
        model("B", either="A | C"),
        model("C", a="A"),
    )
    hit = only("OUT005", checked)
    assert hit.path == ("models", 1, "fields", "b", "type")
    assert hit.cause == ("A -> B -> A",)
    assert codes(checked) == ["OUT005"]


@pytest.mark.parametrize("type_", ["optional[A]", "list[A]", "dict[A]", "A | str", "B | A"])
def test_OUT005_an_end_is_possible(type_: str):
    assert codes(bound(model("A", next=type_, other="B"), model("B", n="int"))) == []


def test_OUT005_long_chains_are_followed():
    names = [f"M{index}" for index in range(3000)]
    chain = [model(a, next=b) for a, b in pairwise(names)]
    assert codes(bound(*chain, model(names[-1], end="str"))) == []
    assert codes(bound(*chain, model(names[-1], end=names[0]))) == ["OUT005"]
