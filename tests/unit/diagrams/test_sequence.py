from weft.diagrams.sequence import (
    MAX_NESTING,
    Block,
    Branch,
    Message,
    Note,
    Participant,
    sequence,
)
from weft.spec.workflow import WorkflowSpec


def workflow(names, *handoffs, tools=(), **settings):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": names[0], **settings},
            "agents": [{"agent_name": name} for name in names],
            "handoffs": handoffs,
            "tools": tools,
        }
    )


def rule(source, target, condition=None, **more):
    return {"source_agent": source, "target_agent": target, "condition": condition, **more}


def message(source, target, text, **more):
    return Message(_key(source), _key(target), text, **more)


def _key(name):
    return name if name == "user" else f"agent:{name}"


def nesting(steps):
    blocks = [step for step in steps if isinstance(step, Block)]
    inner = [nesting(branch.steps) for block in blocks for branch in block.branches]
    return 1 + max(inner) if blocks else 0


def mentioned(steps):
    for step in steps:
        match step:
            case Message():
                yield from (step.source, step.target)
            case Note():
                yield step.over
            case Block():
                for branch in step.branches:
                    yield from mentioned(branch.steps)


def test_the_user_and_all_agents_take_part_in_order():
    told = sequence(workflow("BA", rule("A", "Ghost")))
    assert told.participants == (
        Participant("user", "user", "user"),
        Participant("agent:B", "agent", "B", "worker"),
        Participant("agent:A", "agent", "A", "worker"),
        Participant("agent:Ghost", "undeclared", "Ghost", "not declared"),
    )


def test_a_line_of_agents_is_drawn_without_blocks():
    told = sequence(workflow("ABC", orchestration_pattern="Pipeline", initiated_by="system"))
    assert told.steps == (
        Note("agent:A", "a chat is opened; the agent speaks first"),
        message("A", "B", "by the pattern"),
        message("B", "C", "by the pattern"),
        message("C", "user", "by default"),
        message("user", "C", "answers"),
    )


def test_the_user_opens_and_is_greeted():
    told = sequence(workflow("A", rule("A", "user"), initial_message_to_user="Hello!\nHow?"))
    assert told.steps == (
        message("user", "A", "a chat is opened"),
        message("A", "user", "Hello! How?"),
        message("A", "user", "waits for the user"),
        message("user", "A", "answers"),
    )


def test_conditions_become_alternatives_that_contain_what_follows():
    told = sequence(
        workflow(
            "ABC",
            rule("A", "B", "x"),
            rule("A", "C", "y", priority=2),
            rule("A", "terminate"),
            rule("B", "A"),
            rule("C", "terminate", reason="all done"),
        )
    )
    assert told.steps[1] == Block(
        "alt",
        (
            Branch("x", (message("A", "B", "hands over"), message("B", "A", "hands over"))),
            Branch(
                "y (priority 2)",
                (message("A", "C", "hands over"), Note("agent:C", "the run ends: all done")),
            ),
            Branch("otherwise", (Note("agent:A", "the run ends"),)),
        ),
    )


def test_optional_handoffs_are_dashed():
    told = sequence(workflow("AB", rule("A", "B", "x", condition_scope="pre"), rule("A", "user")))
    assert told.steps[1:] == (
        Block(
            "opt",
            (
                Branch(
                    "x, before A replies",
                    (
                        message("A", "B", "hands over", before=True),
                        message("B", "user", "by default"),
                        message("user", "B", "answers"),
                    ),
                ),
            ),
        ),
        message("A", "user", "waits for the user"),
        message("user", "A", "answers"),
    )
    assert told.legend[0] == "dashed arrow: hands off before the agent replies"


def test_an_agent_entered_in_two_places_gets_a_part_of_its_own():
    told = sequence(
        workflow(
            "ABCD",
            rule("A", "B", "x"),
            rule("A", "C"),
            rule("B", "D"),
            rule("C", "D"),
            rule("D", "D", "again"),
            rule("D", "terminate"),
        )
    )
    assert told.steps[2:] == (
        Note("agent:D", "when D has its turn"),
        Block(
            "alt",
            (
                Branch("again", (message("D", "D", "hands over"),)),
                Branch("otherwise", (Note("agent:D", "the run ends"),)),
            ),
        ),
    )


def test_unreachable_agents_are_drawn_last():
    told = sequence(workflow("ABC", rule("A", "user"), rule("B", "C"), rule("C", "B")))
    assert told.steps[3:] == (
        Note("agent:B", "nothing leads to B"),
        message("B", "C", "hands over"),
        message("C", "B", "hands over"),
    )


def test_alternatives_nest_only_so_deep():
    names = [f"A{number}" for number in range(12)]
    deeper = [rule(names[n], names[n + 1], "x") for n in range(11)]
    told = sequence(workflow(names, *deeper))
    assert nesting(told.steps) == MAX_NESTING + 1
    assert set(mentioned(told.steps)) == {"user", *(f"agent:{name}" for name in names)}


def test_a_single_condition_of_an_undeclared_agent_is_part_of_the_message():
    told = sequence(workflow("A", rule("A", "Ghost"), rule("Ghost", "A", "x")))
    assert told.steps[-1] == message("Ghost", "A", "x")


def test_tools_that_ask_are_notes():
    ui = {"component": "Card", "mode": "inline"}
    tool = {"tool_type": "UI_Tool", "agent": "A", "file": "f.py", "function": "ask", "ui": ui}
    told = sequence(workflow("A", tools=[tool]))
    assert Note("agent:A", "asks: ask (Card, inline)") in told.steps


def test_the_legend_explains_only_what_is_used():
    assert sequence(workflow("A", rule("A", "terminate"))).legend == ()
    told = sequence(workflow("AB", rule("A", "B", "x"), orchestration_pattern="Star"))
    assert told.legend == (
        "otherwise: none of the conditions before it holds",
        "by the pattern: no rule says it, the pattern Star does",
        "by default: no rule says it, the default of the workflow does",
        "after the user's answer the agent that asked continues",
    )


def test_the_run_has_tools_of_its_own():
    spec = workflow("A").model_copy(
        update={
            "lifecycle_tools": WorkflowSpec.model_validate(
                {
                    "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
                    "lifecycle_tools": [
                        {"trigger": "before_chat", "file": "f.py", "function": "load"}
                    ],
                }
            ).lifecycle_tools
        }
    )
    assert sequence(spec).steps[0] == Note("agent:A", "before_chat: load")
