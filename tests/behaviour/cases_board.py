"""Boards: who is on them, what is published, and what agents wait for."""

from typing import Final

from behaviour.cases_base import PACKAGE
from behaviour.cases_mistake import Add, Case, Mistake, Swap, swapped_in

_FILE: Final = "board.json"

_on_board: Final = swapped_in(_FILE)


def _changed(code: str, file: str, mark: str, *mistakes: Mistake) -> Case:
    return Case(code, file, mark, mistakes)


def _orchestrator(key: str) -> Case:
    swap = Swap("orchestrator.json", "leads.", f'leads.", {key}, "model": "sample')
    return _changed("BOARD001", "orchestrator.json", key.partition(": ")[2], swap)


_HANDOFFS: Final = """\
{"handoff_rules": [{"source_agent": "reporter", "target_agent": "editor"}]}
"""

_WAYS: Final = [
    _orchestrator('"initial_agent": "reporter"'),
    _orchestrator('"default_target": "nobody"'),
    _orchestrator('"parallel": [{"name": "staff", "members": ["reporter", "editor"]}]'),
    _changed(
        "BOARD001",
        "handoffs.json",
        '{"source_agent"',
        Add("handoffs.json", _HANDOFFS),
    ),
    _changed(
        "BOARD001",
        "structured_outputs.json",
        '{"agent": "editor"',
        Swap(
            "structured_outputs.json",
            '"registry": []',
            '"registry": [{"agent": "editor", "model": "Story"}]',
        ),
    ),
    _changed(
        "BOARD001",
        "agents.json",
        "true",
        Swap("agents.json", '"checker"', '"checker", "auto_tool_mode": true'),
    ),
    Case(
        "BOARD001",
        "flow.json",
        '{"steps"',
        (Add("flow.json", '{"steps": []}\n'),),
    ),
]

_WHO: Final = [
    Case(
        "BOARD002",
        _FILE,
        '"edtor"',
        (Swap(_FILE, '"agent": "editor"', '"agent": "edtor"'),),
    ),
    _changed(
        "BOARD003",
        "agents.json",
        '"archivist"',
        Swap("agents.json", '"checker"}', '"checker"}, {"agent_name": "archivist"}'),
    ),
    _on_board(
        "BOARD004",
        '    {\n      "agent": "clock",',
        '    {"agent": "clock" , "consumes": [{"types": ["Lead"]}]},\n'
        '    {\n      "agent": "clock",',
        '"clock",',
    ),
    _on_board("BOARD010", ',\n      "schedule": {"cron": "0 6 * * 1"}', "", '"clock"'),
    _on_board("BOARD020", '"checker", "reporter", "user:ada"', '"cheker"', '"cheker"'),
    _on_board(
        "BOARD020",
        '{"kind": "labelled", "labels": ["staff"]}',
        '{"kind": "after", "seconds": 1, "then": {"kind": "private", "agents": ["boss"]}}',
        '"boss"',
    ),
    _on_board(
        "BOARD020",
        '"provider": {"kind": "correlated"}',
        '"provider": {"kind": "filtered", "filters": {"producers": ["boss"]}}',
        '"boss"',
    ),
    _on_board("BOARD021", '"labels": ["staff"]}', '"labels": ["stuff"]}', '"stuff"'),
    _on_board("BOARD022", '["pre_consume"]', "[]", "[]"),
    _on_board(
        "BOARD022",
        '  "agents": [',
        '  "components": [{"component": "tools.desk:Clerk", "hooks": ["error"]}],\n  "agents": [',
        '["error"]',
    ),
    _on_board(
        "BOARD026",
        '"publishes": [{"type": "Lead"}]',
        '"consumes": [{"types": ["Lead" ]}],\n'
        '      "publishes": [{"type": "Lead"}], "prevent_self_trigger": false',
        '["Lead" ]',
    ),
    Case(
        "BOARD027",
        _FILE,
        '"reporter",\n',
        (Swap("agents.json", ', "description": "Writes a story about a lead."', ""),),
    ),
]

_ELSEWHERE: Final = [
    Case(
        "BOARD028",
        "agents.json",
        '{"kind": "board"}',
        (
            Swap(
                "agents.json",
                '"agent_type": "router",',
                '"agent_type": "router", "context": [{"kind": "board"}, {"kind": "variables"}],',
            ),
        ),
        base=PACKAGE,
    ),
]

_WHAT: Final = [
    _on_board("BOARD005", '"types": ["Story"]', '"types": ["story"]', '"story"', mends=True),
    _on_board("BOARD005", '"types": ["Story"]', '"types": ["Sotry"]', '"Sotry"'),
    Case(
        "BOARD005",
        _FILE,
        '"Stories"',
        (Swap(_FILE, '"publishes": [{"type": "Lead"}]', '"publishes": [{"type": "Stories"}]'),),
    ),
    _on_board(
        "BOARD005",
        '"provider": {"kind": "correlated"}',
        '"provider": {"kind": "summary", "provider": {"kind": "empty"}, "templates": {"A": ""}}',
        '""',
    ),
    _on_board(
        "BOARD005",
        '"provider": {"kind": "correlated"}',
        '"provider": {"kind": "filtered", "filters": {"types": ["Tick", "Leads"]}}',
        '"Leads"',
    ),
    Case(
        "BOARD006",
        _FILE,
        '"Photo",',
        (
            Swap(_FILE, '    "Story",\n', '    "Story",\n    "Photo",\n'),
            Swap(_FILE, '[{"type": "Lead"}]', '[{"type": "Lead"}, {"type": "Photo"}]'),
        ),
    ),
    _on_board("BOARD007", '    "Lead",\n', '    "Lead",\n    "Lead" ,\n', '"Lead" ,'),
    _on_board("BOARD007", '{"type": "Lead"}', '{"type": "Lead"}, {"type": "Lead" }', '"Lead" }'),
    Case(
        "BOARD008",
        _FILE,
        '{"name": "Photo"',
        (
            Swap(
                _FILE,
                '    "Story",\n',
                '    "Story",\n    {"name": "Photo", "schema": {"properties": {"of": {}}}},\n',
            ),
        ),
    ),
    _on_board("BOARD009", '{"type": "string"}', '{"type": "text"}', '"text"'),
    _on_board(
        "BOARD009",
        '{"type": "object", "properties": {"headline": {"type": "string"}}}',
        '{"type": "array"}',
        '{"type": "array"}',
    ),
    _on_board("BOARD013", "tools.desk:is_long", "tools.desk:is_lnog", '"tools.desk:is_lnog"'),
    _on_board("BOARD013", '"tools.desk:Clerk"', '"tools.clerks:Clerk"', '"tools.clerks:Clerk"'),
    _on_board("BOARD014", '"tools.desk:is_long"', '"local:is_long"', '"local:is_long"'),
]

_WAITING: Final = [
    _on_board("BOARD011", '"urgency > 2"', '"urgency = 3"', "= 3"),
    _on_board("BOARD011", '"Lead >= 2"', '"Lead => 2"', "=> 2"),
    _on_board("BOARD012", '"urgency > 2"', '"urgncy > 2"', "urgncy"),
    _on_board("BOARD012", '"by": "headline"', '"by": {"Story": "body", "Check": "id"}', 'id"}'),
    _on_board("BOARD015", '"by": "headline", ', "", '{"within_seconds"'),
    _on_board("BOARD015", '"Story" , "Check"', '"Story" ', '{"by"'),
    _on_board("BOARD015", '"by": "headline"', '"by": {"Story": "headline"}', '{"by"'),
    _on_board("BOARD016", ', "within_seconds": 60', "", '{"by"'),
    _on_board("BOARD017", '{"size": 5}', "{}", "{}"),
    _on_board("BOARD018", '"0 6 * * 1"', '"0 6 * *"', '"0 6 * *"'),
    _on_board("BOARD018", '"cron": "0 6 * * 1"', '"max_repeats": 3', '{"max_repeats"'),
    _on_board("BOARD018", '"cron"', '"every_seconds": 5, "cron"', '{"every_seconds"'),
    _on_board(
        "BOARD019",
        '"batch": {"size": 5}}],',
        '"batch": {"size": 5}}],\n      "schedule": {"daily": "06:00"},',
        '{"size": 5}',
    ),
    _on_board("BOARD023", ', "drop": ["phone"]', "", '{"kind": "redacting"'),
    _on_board("BOARD023", '["phone"]', '["phon"]', '"phon"'),
    _on_board(
        "BOARD023",
        '{"kind": "correlated"}',
        '{"kind": "filtered", "limit": 3, "filters": {"limit": 5}}',
        '{"kind": "filtered"',
    ),
    _on_board(
        "BOARD023",
        '{"kind": "correlated"}',
        '{"kind": "filtered", "filters": {"tags": {"all_of": ["a"], "exclude": ["a"]}}}',
        '{"kind": "filtered"',
    ),
    _on_board("BOARD024", '["pre_consume"]', '["pre_evaluate"]', '{"kind": "state"}'),
    _on_board("BOARD029", '"batch": {"size": 5}', '"threshold": 0.75', "0.75"),
    _on_board(
        "BOARD030",
        '{"kind": "correlated"}',
        '{"kind": "semantic", "query": "bees", "query_field": "headline"}',
        '"headline"}, "drop"',
    ),
    _on_board(
        "BOARD012",
        '{"kind": "correlated"}',
        '{"kind": "semantic", "query_field": "headlines"}',
        'headlines"',
    ),
    _on_board("BOARD025", '"Lead >= 2"', '"Leads >= 2"', "Leads >="),
    _on_board("BOARD025", '"Lead >= 2"', '"Lead >= 2", "scope": "all"', '"Lead >= 2"'),
]

CASES: Final = [*_WAYS, *_WHO, *_WHAT, *_WAITING, *_ELSEWHERE]
