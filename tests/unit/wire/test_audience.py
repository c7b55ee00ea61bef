"""What users see of what is said."""

from weft.context.audience import Audience
from weft.spec.workflow import WorkflowSpec


def audience(*triggers, transitions=(), **orchestrator):
    source = {"type": "derived", "triggers": list(triggers), "transitions": list(transitions)}
    declared = {"workflow_name": "W", "initial_agent": "A", **orchestrator}
    return Audience(
        WorkflowSpec.model_validate(
            {
                "orchestrator": declared,
                "agents": [{"agent_name": "A"}, {"agent_name": "B"}],
                "variables": {
                    "v": {"type": "bool", "source": source},
                    "w": {"type": "bool", "source": {"type": "static", "value": True}},
                },
            }
        )
    )


def sign(type_, text, **more):
    return {"type": type_, "match": {"equals": text}, "ui_hidden": True, **more}


def test_all_agents_are_seen_unless_some_are_named():
    assert audience().hears("A", "hi")
    named = audience(visual_agents=["B"])
    assert (named.hears("A", "hi"), named.hears("B", "hi")) == (False, True)
    assert (named.sees_while_streaming("A"), named.sees_while_streaming("B")) == (False, True)


def test_an_agents_sign_is_not_shown():
    seen = audience(sign("agent_text", "DONE", agent="A"))
    assert [seen.hears("A", text) for text in ("done", "well done")] == [False, True]
    assert seen.hears("B", "done")
    # What it will say is not known while it speaks.
    assert (seen.sees_while_streaming("A"), seen.sees_while_streaming("B")) == (False, True)
    assert seen.sees_user_text("done")


def test_a_users_sign_is_not_shown():
    seen = audience(sign("user_text", "/reset", ui_hidden=True))
    assert [seen.sees_user_text(text) for text in ("/reset", "hello")] == [False, True]
    assert seen.hears("A", "/reset")


def test_the_sign_of_a_transition_is_not_shown():
    step = {"from": False, "to": True, "trigger": sign("agent_text", "DONE", agent="A")}
    seen = audience(transitions=[step, {"from": True, "to": False}])
    assert not seen.hears("A", "DONE")


def test_other_triggers_hide_nothing():
    shown = {**sign("agent_text", "DONE", agent="A"), "ui_hidden": False}
    own = {**sign("user_text", "DONE"), "ui_hidden": False}
    seen = audience(shown, own, {"type": "handoff"})
    assert seen.hears("A", "DONE")
    assert seen.sees_user_text("DONE")
