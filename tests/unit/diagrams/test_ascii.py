from weft.diagrams import draw
from weft.diagrams.ascii import cut, plain, wrap
from weft.spec.workflow import WorkflowSpec


def workflow(names, *handoffs, tools=(), **settings):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Desk", "initial_agent": names[0], **settings},
            "agents": [{"agent_name": name} for name in names],
            "handoffs": handoffs,
            "tools": tools,
        }
    )


def rule(source, target, condition=None, **more):
    return {"source_agent": source, "target_agent": target, "condition": condition, **more}


def ui_tool(agent, function):
    ui = {"component": "Card", "mode": "inline"}
    return {"tool_type": "UI_Tool", "agent": agent, "file": "f.py", "function": function, "ui": ui}


def picture(spec, kind):
    text = draw(spec, kind=kind, form="ascii")
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 100
    return text.splitlines()


def test_a_graph_is_a_block_for_each_agent():
    spec = workflow(
        ["Router", "Clerk", "Lost"],
        rule("Router", "Clerk", "topic == 'bill'"),
        rule("Clerk", "Router", "lost", condition_scope="pre"),
        rule("Clerk", "terminate", reason="settled"),
        tools=[ui_tool("Router", "ask")],
    )
    assert picture(spec, "graph") == [
        "Desk   (pattern: DefaultPattern)",
        "",
        "+--------------------------+",
        "| start : a chat is opened |",
        "+--------------------------+",
        "  |",
        "  +--> Router   the user speaks first",
        "",
        "+-----------------+",
        "| Router : worker |",
        "+-----------------+",
        "  | asks: ask (Card, inline)",
        "  |",
        '  +--> Clerk   if topic == "bill"',
        "  +<-> user    otherwise, by default",
        "",
        "+----------------+",
        "| Clerk : worker |",
        "+----------------+",
        "  |",
        "  +..> Router   before replying, if lost",
        "  +--> end      always; settled",
        "",
        "+--------------------------------------+",
        "| Lost : worker   (nothing leads here) |",
        "+--------------------------------------+",
        "  |",
        "  +<-> user   by default",
    ]


def test_long_texts_are_wrapped_and_hang_under_their_beginning():
    condition = " and ".join(f"variable_number_{n} == {n}" for n in range(10))
    spec = workflow(
        ["A"],
        rule("A", "Ghost", condition),
        rule("A", "user", condition),
        rule("A", "terminate"),
        tools=[ui_tool("A", "f" * 150)],
    )
    lines = picture(spec, "graph")
    first = next(n for n, line in enumerate(lines) if "+--> Ghost" in line)
    assert lines[first + 1].startswith("  |            variable_number_")
    assert "  |   fff" in "\n".join(lines)
    assert "| Ghost : not declared |" in lines


def test_the_last_way_has_no_line_beside_its_continuation():
    spec = workflow(["A"], rule("A", "terminate", reason="word " * 20))
    assert picture(spec, "graph")[-1].startswith("             word")


def test_few_participants_get_lanes():
    spec = workflow(
        "AB",
        rule("A", "B", "x"),
        rule("A", "A", "again", condition_scope="pre"),
        rule("A", "terminate"),
        rule("B", "A"),
    )
    rails = "            |                         |                         |"
    assert picture(spec, "sequence") == [
        "Desk",
        "",
        "           user                       A                         B",
        rails,
        "            | a chat is opened        |                         |",
        "            |------------------------>|                         |",
        "==[if again, before A replies]================================================",
        rails,
        "            |                         | hands over              |",
        "            |                         |..+                      |",
        "            |                         |<.+                      |",
        "==[end]=======================================================================",
        "==[if x]======================================================================",
        rails,
        "            |                         | hands over              |",
        "            |                         |------------------------>|",
        rails,
        "            |                         | hands over              |",
        "            |                         |<------------------------|",
        "==[otherwise]=================================================================",
        rails,
        "            |                 [ the run ends ]                  |",
        "==[end]=======================================================================",
        rails,
        "",
        "dashed arrow: hands off before the agent replies",
        "otherwise: none of the conditions before it holds",
    ]


def test_nested_alternatives_are_indented():
    spec = workflow("ABC", rule("A", "B", "x"), rule("B", "C", "y"), rule("A", "C", "z"))
    lines = picture(spec, "sequence")
    assert any(line.startswith("==[else if z]") for line in lines)
    assert any(line.startswith("  ==[if y]") for line in lines)


def test_texts_stay_on_the_page():
    names = ["A", "B", "C", "D", "E", "FarToTheRight"]
    spec = workflow(
        names,
        rule("A", "FarToTheRight"),
        rule("FarToTheRight", "FarToTheRight", "word " * 30),
        rule("FarToTheRight", "terminate", reason="word " * 30),
    )
    lines = picture(spec, "sequence")
    assert any(line.rstrip().endswith("word ]") for line in lines)


def test_many_participants_are_listed():
    names = [f"Agent{n}" for n in range(8)]
    spec = workflow(
        names,
        rule("Agent0", "Agent1", "x"),
        rule("Agent0", "Agent2", "y", condition_scope="pre"),
        rule("Agent0", "Agent3", "long " * 30, condition_type="llm"),
        orchestration_pattern="Pipeline",
        human_in_the_loop=False,
    )
    assert picture(spec, "sequence")[:12] == [
        "Desk",
        "",
        "user --> Agent0: a chat is opened",
        "if y, before Agent0 replies:",
        "    Agent0 ..> Agent2: hands over",
        "if x:",
        "    Agent0 --> Agent1: hands over",
        f"else if a model says:{' long' * 15}",
        "  long long long long long long long long lo...:",
        "    Agent0 --> Agent3: hands over",
        "otherwise, by the pattern:",
        "    Agent0 --> Agent1: hands over",
    ]
    assert "[Agent7] the run ends: by default" in picture(spec, "sequence")


def test_nothing_to_explain_means_no_legend():
    spec = workflow("A", rule("A", "terminate"), trigger={"type": "webhook"})
    assert picture(spec, "sequence")[-1].strip(" |") == ""


def test_other_alphabets_are_written_in_ascii():
    assert plain("Café ½") == "Cafe \\xbd"
    assert plain("名😀") == "\\u540d\\U0001f600"
    assert plain("\ufffd") == "\\ufffd"
    assert plain("\u0301") == "\\u0301"


def test_texts_are_cut_and_broken_to_a_width():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abc..."
    assert wrap("aaa bb-cc dddddd", 5) == ["aaa", "bb-cc", "ddddd", "d"]
