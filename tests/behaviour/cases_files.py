"""Family SCHEMA: files that cannot be read, or do not have the right shape."""

from typing import Final

from behaviour.cases_base import PACKAGE
from behaviour.cases_mistake import END, Add, Case, Drop, Swap, swapped_in

_in_orchestrator: Final = swapped_in("orchestrator.json")

_BAD_BYTES: Final = [
    _in_orchestrator("SCHEMA001", "Answers", "Caf\udce9 answers", "\ufffd answers"),
    Case("SCHEMA001", "tools/orders.py", None, (Swap("tools/orders.py", "Orders", "Caf\udce9"),)),
]

#: Every declared file once without its last bracket: no other file is blamed for it.
_CUT_OFF: Final = [
    Case("SCHEMA002", file, END, (Swap(file, text, text.rstrip()[:-1].rstrip()),))
    for file, text in PACKAGE.items()
    if file.endswith(".json")
]

CASES: Final = [
    *_BAD_BYTES,
    *_CUT_OFF,
    _in_orchestrator("SCHEMA002", "30,", "30", '\n  "human_in_the_loop"'),
    _in_orchestrator("SCHEMA003", "30,", '30, "max_turns": 9,', '"max_turns": 9'),
    _in_orchestrator("SCHEMA004", "30,", "30123456789012345678,", "30123456789012345678"),
    Case("SCHEMA005", "flow.yaml", "1: one", (Add("flow.yaml", "steps:\n  1: one\n"),)),
    _in_orchestrator("SCHEMA006", "30,", "30, // enough", "// enough"),
    _in_orchestrator("SCHEMA007", "30,", '"thirty",', '"thirty"'),
    swapped_in("context_variables.json")("SCHEMA007", '"dict"', '"dct"', 'dct"'),
    swapped_in("context_variables.json")("SCHEMA007", '"TECH"', '" "', '" "'),
    swapped_in("context_variables.json")("SCHEMA007", '"REFUNDS?"}', '""}', '""}'),
    _in_orchestrator("SCHEMA008", "max_turns", "max_turn", '"max_turn"'),
    _in_orchestrator("SCHEMA008", "max_turns", "maxTurns", '"maxTurns"', mends=True),
    swapped_in("handoffs.json")(
        "SCHEMA009", ', "target_agent": "TechAgent"', "", '{"source_agent": "FrontAgent",\n'
    ),
    _in_orchestrator("SCHEMA010", "human_in_the_loop", "human_in_loop", '"human_in_loop"'),
    Case("SCHEMA011", "agents.yaml", None, (Add("agents.yaml", "agents: []\n"),)),
    Case("SCHEMA012", "agents.json", None, (Drop("agents.json"),)),
    Case("SCHEMA013", "flows.json", None, (Add("flows.json", '{"steps": []}\n'),)),
    _in_orchestrator("LINK003", '"max_turns"', '"loop_guard": {}, "max_turns"', '{}, "max_turns"'),
    # These two happen to a package on its way, after it was packed.
    Case("SCHEMA015", "desk.zip", None, (Swap("orchestrator.json", "30,", "31,"),)),
    Case("SCHEMA015", "desk.zip", None, (Add("../start.py", "print()\n"),)),
]
