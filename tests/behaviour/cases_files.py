"""Family SCHEMA: what the reader says about files."""

from typing import Final

from behaviour.cases_base import PACKAGE
from behaviour.cases_mistake import Add, Case, Drop, Swap, swapped

_TURNS: Final = '"max_turns": 30,'

_CUT_OFF: Final = [
    Case("SCHEMA002", file, "\n", (Swap(file, text, text.replace("\n", " ").strip()[:-1] + "\n"),))
    for file, text in PACKAGE.items()
    if file.endswith(".json")
]

CASES: Final = [
    swapped("SCHEMA001", "orchestrator.json", "Answers", "Caf\udce9 answers", "\ufffd answers"),
    swapped("SCHEMA001", "tools/orders.py", "Orders", "Caf\udce9", "X"),
    swapped("SCHEMA002", "orchestrator.json", _TURNS, '"max_turns": 30', '"human_in_the_loop"'),
    *_CUT_OFF,
    swapped(
        "SCHEMA003", "orchestrator.json", _TURNS, f'{_TURNS} "max_turns": 9,', '"max_turns": 9'
    ),
    swapped(
        "SCHEMA004", "orchestrator.json", "30,", "30123456789012345678,", "30123456789012345678"
    ),
    Case(
        "SCHEMA005",
        "flow.yaml",
        "1: one",
        (Add("flow.yaml", "steps:\n  1: one\n"),),
    ),
    swapped("SCHEMA006", "orchestrator.json", _TURNS, f"{_TURNS} // enough", "// enough"),
    swapped("SCHEMA007", "orchestrator.json", "30,", '"thirty",', '"thirty"'),
    swapped("SCHEMA007", "context_variables.json", '"type": "dict"', '"type": "dct"', '"dct"'),
    swapped("SCHEMA008", "orchestrator.json", "max_turns", "max_turn", '"max_turn"'),
    swapped("SCHEMA008", "orchestrator.json", "max_turns", "maxTurns", '"maxTurns"'),
    swapped(
        "SCHEMA009",
        "handoffs.json",
        '"target_agent": "TechAgent", ',
        "",
        '{"source_agent": "FrontAgent", "condition"',
    ),
    swapped(
        "SCHEMA010",
        "orchestrator.json",
        "human_in_the_loop",
        "human_in_loop",
        '"human_in_loop"',
    ),
    Case("SCHEMA011", "agents.yaml", None, (Add("agents.yaml", "agents: []\n"),)),
    Case("SCHEMA012", "agents.json", None, (Drop("agents.json"),)),
    Case("SCHEMA013", "flows.json", None, (Add("flows.json", "{}\n"),)),
    swapped(
        "SCHEMA014",
        "agents.json",
        '"agent_type": "router",',
        '"agent_type": "router", "context": [{"kind": "history"}],',
        '"context"',
    ),
    Case("SCHEMA014", "flow.json", "{", (Add("flow.json", '{"steps": []}\n'),)),
    Case("SCHEMA014", "board.yaml", "artifacts", (Add("board.yaml", "artifacts: []\n"),)),
]
