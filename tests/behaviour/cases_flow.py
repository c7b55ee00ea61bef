"""Flows: the order of steps, what they read and set, and who does them."""

from typing import Final

from behaviour.cases_mistake import Add, Case, Mistake, Swap, swapped_in

_FILE: Final = "flow.json"
_UNTIL: Final = '"until": "document.score > 3"'

_in_flow: Final = swapped_in(_FILE)


def _changed(code: str, file: str, mark: str, *mistakes: Mistake) -> Case:
    return Case(code, file, mark, mistakes)


def _orchestrator(key: str) -> Case:
    swap = Swap("orchestrator.json", "letters.", f'letters.", {key}, "model": "sample')
    return _changed("FLOW001", "orchestrator.json", key.partition(": ")[2], swap)


_HANDOFFS: Final = '{"handoff_rules": [{"source_agent": "Writer", "target_agent": "Judge"}]}\n'

_WAYS: Final = [
    _orchestrator('"initial_agent": "Writer"'),
    _orchestrator('"max_turns": 9'),
    _changed("FLOW001", "handoffs.json", '{"source_agent"', Add("handoffs.json", _HANDOFFS)),
    _changed(
        "FLOW001",
        "agents.json",
        '"single"',
        Swap("agents.json", '"Judge",', '"Judge", "human_interaction": "single",'),
    ),
    _changed(
        "FLOW030",
        "agents.json",
        '"Printer"',
        Swap(
            "agents.json",
            '{"agent_name": "Judge"',
            '{"agent_name": "Printer"}, {"agent_name": "Judge"',
        ),
    ),
]

_EMPTY: Final = Case(
    "FLOW003",
    _FILE,
    "{",
    (Add(_FILE, '{"steps": []}\n'),),
    base={
        "orchestrator.json": '{"workflow_name": "OrderDesk", "description": "Waits."}\n',
        "agents.json": '{"agents": []}\n',
    },
)

_ORDER: Final = [
    _in_flow("FLOW002", '"rewrite"', '"  "', '"  "'),
    _in_flow("FLOW002", '"rewrite"', '"/again"', '"/again"'),
    _in_flow("FLOW002", '"name": "facts"', '"name": "the/facts"', '"the/facts"'),
    _EMPTY,
    _in_flow("FLOW005", '"join_both"', '"outline"', '"outline",\n        "work": {"kind": "fun'),
    _in_flow("FLOW005", '"name": "style",\n', '"name": "facts" ,\n', '"facts" ,'),
    _in_flow(
        "FLOW006",
        """,
      "join": {
        "kind": "step",
        "name": "join_both",
        "work": {"kind": "function", "function": "tools.steps:join"}
      }""",
        "",
        '{\n      "kind": "fork"',
    ),
    _in_flow("FLOW010", '"max_iterations": 4', '"max_iterations": -4', "-4"),
    _in_flow(
        "FLOW009",
        """"steps": [
        {
          "kind": "step",
          "name": "rewrite",
          "work": {"kind": "function", "function": "tools.steps:rewrite"}
        }
      ]""",
        '"steps": []',
        '{\n      "kind": "repeat"',
    ),
    _in_flow(
        "FLOW007",
        """{
          "name": "facts",
          "steps": [
            {
              "kind": "step",
              "name": "check_facts",
              "work": {"kind": "function", "function": "tools.steps:check_facts"}
            }
          ]
        },
        """,
        "",
        '{\n      "kind": "fork"',
    ),
    _in_flow(
        "FLOW008",
        """[
            {
              "kind": "step",
              "name": "check_facts",
              "work": {"kind": "function", "function": "tools.steps:check_facts"}
            }
          ]""",
        "[]",
        '{\n          "name": "facts"',
    ),
    _in_flow(
        "FLOW017",
        '"on_failure": {"steps": []}',
        '"on_failure": {"steps": [], "ends": true}',
        '{"steps": [], "ends": true}\n        }',
    ),
]

_OPTIONS: Final = [
    _in_flow("FLOW012", "0.8", "1.5", "1.5"),
    _in_flow(
        "FLOW013",
        ', "path": {"steps": [], "ends": true}}',
        "}",
        '{"minimum"',
    ),
    _in_flow("FLOW014", '"attempts": 3', '"attempts": 0', "0, "),
    _in_flow("FLOW014", '"delay_seconds": 2', '"delay_seconds": -2', "-2"),
    _in_flow("FLOW014", '"attempts": 3', '"attempts": 1001', "1001"),
    _in_flow("FLOW014", '"delay_seconds": 2', '"delay_seconds": 1e9', "1e9"),
    _in_flow("FLOW015", '"timeout_seconds": 60,', '"timeout_seconds": 1e20,', "1e20"),
    _in_flow("FLOW015", '"timeout_seconds": 3600', '"timeout_seconds": 31536001', "31536001"),
    _in_flow("FLOW015", '"timeout_seconds": 60,', '"timeout_seconds": 0,', "0,\n"),
    _in_flow("FLOW015", '"timeout_seconds": 3600', '"timeout_seconds": -1', "-1"),
    _in_flow("FLOW016", '"attempts": 3', '"attempts": 1', '{"attempts"'),
    _in_flow(
        "FLOW016",
        '"step": "tools.steps:Stylist"',
        '"prompt": "Correct it.", "step": "tools.steps:Stylist"',
        '"Correct it."',
    ),
    _in_flow(
        "FLOW016",
        '"function": "tools.steps:tell"}',
        '"function": "tools.steps:tell"}, "compensate": {"kind":"function", "function": '
        '"tools.steps:forget"}',
        '{"kind":"function"',
    ),
    _in_flow(
        "FLOW016",
        '"function": "tools.steps:rewrite"}',
        '"function": "tools.steps:rewrite"}, "context": {}',
        "{}\n        }",
    ),
    _in_flow(
        "FLOW016",
        '"function": "tools.steps:rewrite"}',
        '"function": "tools.steps:rewrite"}, "context": {"sources": [{"kind": "history"}]}',
        '{"kind": "history"',
    ),
    _in_flow("FLOW016", ', "rejects": true', "", '{"steps": [], "ends": true},\n      "output"'),
]

_STATE: Final = [
    _in_flow("FLOW018", '"agent": "Judge"', '"agent": "Juge"', '"Juge"'),
    _in_flow("FLOW019", '"document.summary"', '"document.sumary"', "sumary"),
    _in_flow("FLOW019", '"query_path": "topic"', '"query_path": "tpic"', 'tpic"'),
    _in_flow("FLOW019", "Outline {topic}", "Outline {tpic}", "tpic}"),
    _in_flow("FLOW019", "Print {topic}", "Print {document.summary}", "document.summary}"),
    _in_flow("FLOW019", _UNTIL, '"until": "document.scre > 3"', "scre >"),
    _in_flow(
        "FLOW019",
        '"output": "text"',
        '"output": "document.summary"',
        '"document.summary"},\n      "context"',
    ),
    _in_flow("FLOW019", '"output": "decision"', '"output": "style"', '"style"\n'),
    _in_flow("FLOW020", _UNTIL, '"until": "document.score = 3"', "= 3"),
    _in_flow("FLOW021", _UNTIL, """"until": "document.score == 'high'\"""", "document.score =="),
    _in_flow(
        "FLOW022",
        '{"value": "letter", "path": {}},',
        '{"value": "letter", "path": {}}, {"value":"letter", "path": {}},',
        '"letter", "path": {}},\n',
    ),
    _in_flow("FLOW023", '"value": "letter"', '"value": "leter"', '"leter"'),
    _in_flow("FLOW024", '{"value": "letter", "path": {}},\n', "", '{\n      "kind": "branch"'),
    _in_flow("FLOW025", '"default": "no"', '"default": "nay"', '"nay"'),
    _in_flow("FLOW025", '[{"name": "yes"}, {', "[{", '[{"name": "no"'),
    _in_flow("FLOW026", '"role:editor"', '"editor"', '"editor"'),
    _in_flow("FLOW027", '"query_path": "topic",\n', "", '{\n            "kind": "retrieval"'),
    _in_flow("FLOW027", '"top_k": 5', '"top_k": -5', "-5"),
    _in_flow("FLOW027", '"min_relevance": 0.7', '"min_relevance": 70', "70"),
    _in_flow("FLOW027", '"path": "kind"}', '"path": "kind", "value": "book"}', '{"key"'),
    _in_flow(
        "FLOW027",
        '[{"key": "kind", "path": "kind"}]',
        '[{"key": "kind", "path": "kind"}, {"key": "kind" , "value": "book"}]',
        '"kind" ,',
    ),
    _in_flow(
        "FLOW028",
        '"context": {\n        "sources"',
        '"context": {\n        "format": {"template": "Hello"},\n        "sources"',
        '"Hello"',
    ),
    _in_flow("FLOW028", '"board": "NewsDesk"', '"board": "OrderDesk"', '"OrderDesk"'),
    _in_flow("FLOW029", ', "output": "text"', "", '{"kind": "agent", "agent": "Writer", "prompt"'),
    _in_flow("FLOW035", '"output": "text"', '"output": "document"', '"document"}'),
    _in_flow("FLOW035", '"output": "decision"', '"output": "kind"', '"kind"\n'),
    _changed(
        "FLOW036",
        _FILE,
        '{\n      "kind": "fork"',
        Swap(_FILE, '"letter", "path": {}', '"letter", "path": {"ends": true}'),
        Swap(_FILE, '"path": {\n            "steps"', '"path": {"ends": true, "steps"'),
    ),
    _in_flow("FLOW031", '"tools.steps:rewrite"', '"tools.steps:rewrit"', '"tools.steps:rewrit"'),
    _in_flow("FLOW032", '"tools.steps:rewrite"', '"local:rewrite"', '"local:rewrite"'),
]

CASES: Final = [*_WAYS, *_ORDER, *_OPTIONS, *_STATE]
