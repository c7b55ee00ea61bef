"""Rules about boards: what each says, and what it leaves alone."""

import json
from typing import Any

import pytest

from weft.check.meanings import comparisons
from weft.check.rule import rules_of
from weft.check.rules import board, board_waiting
from weft.check.run import RULES, check
from weft.check.subject import Hit, Subject
from weft.spec.workflow import WorkflowSpec

CODE = """\
class Desk:
    class Inner: ...


def is_local(payload): ...
"""
OF_BOARDS = {it.code: it for it in rules_of(board, board_waiting)}
OBJECT = {"type": "object", "properties": {"id": {"type": "string"}, "size": {"type": "integer"}}}
TYPES = [{"name": "News", "schema": OBJECT}, {"name": "Note", "schema": OBJECT}]


def member(name: str = "reader", **fields: Any) -> dict[str, Any]:
    return {"agent": name, "consumes": [{"types": ["News"]}], **fields}


def workflow(
    *agents: dict[str, Any],
    folder: str = "Desk",
    code: dict[str, str] | None = None,
    declared: list[dict[str, Any]] | None = None,
    orchestrator: dict[str, Any] | None = None,
    parts: dict[str, Any] | None = None,
    **fields: Any,
) -> Subject:
    """A board with the types News and Note, and a declared agent for each of those given."""
    told = [{"agent_name": it["agent"], "description": "Reads."} for it in agents]
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Desk", **(orchestrator or {})},
            "agents": told if declared is None else declared,
            "board": {"artifacts": TYPES, "agents": list(agents), **fields},
            **(parts or {}),
        }
    )
    return Subject(spec, folder=folder, code={"tools/desk.py": CODE} if code is None else code)


def hits(code: str, subject: Subject) -> list[Hit]:
    return list(OF_BOARDS[code].check(subject))


def only(code: str, subject: Subject) -> Hit:
    (hit,) = hits(code, subject)
    return hit


def consuming(**fields: Any) -> Subject:
    return workflow(member(consumes=[{"types": ["News", "Note"], **fields}]))


def seeing(context: dict[str, Any], **fields: Any) -> Subject:
    return workflow(member(context=context, **fields))


def found(code: str, subject: Subject) -> list[tuple[tuple[str | int, ...], str]]:
    return [(it.path, it.message) for it in hits(code, subject)]


READER = ("board", "agents", 0)
CONSUMED = (*READER, "consumes", 0)


def test_a_conversation_has_none_of_it():
    spec = WorkflowSpec.model_validate(
        {"orchestrator": {"workflow_name": "W", "initial_agent": "A"}, "agents": []}
    )
    assert [it for rule in OF_BOARDS.values() for it in rule.check(Subject(spec))] == []


def test_a_sound_board_has_none_of_it():
    subject = workflow(
        member(publishes=[{"type": "Note"}], components=[], max_concurrency=1),
        member("second", consumes=[{"types": ["Note"], "mode": "direct"}]),
        code={},
    )
    assert check(subject) == ()


def test_what_belongs_to_a_conversation_does_not_apply_to_boards():
    declared = [{"agent_name": "user", "description": "Reads.", "max_consecutive_auto_reply": 3}]
    handoffs = [{"source_agent": "nobody", "target_agent": "none", "condition": "a = "}]
    subject = workflow(
        member("user"),
        member("user_2", consumes=[{"types": ["Note"]}]),
        declared=[*declared, {"agent_name": "user_2", "structured_outputs_required": True}],
        orchestrator={"parallel": [{"name": "a", "members": ["b", "c"]}], "default_target": "x"},
        parts={"handoffs": handoffs},
        code={},
    )
    codes = {it.code for it in check(subject)}
    assert codes == {"BOARD001", "BOARD027"}
    named = [path for path, _ in found("BOARD001", subject)]
    assert named == [
        ("orchestrator", "parallel"),
        ("orchestrator", "default_target"),
        ("handoffs", 0),
        ("agents", 0, "max_consecutive_auto_reply"),
        ("agents", 1, "structured_outputs_required"),
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pep_talk_lead", None),
        ("PepTalkLead", None),
        ("pep talk", 'the agent name "pep talk" is neither PascalCase nor snake_case'),
    ],
)
def test_NAME001_on_a_board(name, message):
    said = [it.message for it in check(workflow(member(name))) if it.code == "NAME001"]
    assert said == ([message] if message else [])


def test_BIND005_belongs_to_conversations():
    assert [
        it.code
        for it in check(workflow(member(), member("b", consumes=[{"types": ["Note"]}])))
        if it.code == "BIND005"
    ] == []
    (rule,) = [it for it in RULES if it.code == "BIND005"]
    lacking = WorkflowSpec.model_validate(
        {"orchestrator": {"workflow_name": "W"}, "agents": [{"agent_name": "Front"}]}
    )
    (hit,) = rule.check(Subject(lacking))
    assert (hit.path, hit.message) == (
        ("orchestrator",),
        'the key "initial_agent" is missing',
    )
    assert hit.hint == ('add "initial_agent": "Front"',)


def test_BOARD002_names_the_agent_that_was_meant():
    hit = only("BOARD002", workflow(member("redaer"), declared=[{"agent_name": "reader"}]))
    assert hit.message == '"redaer" on the board is no agent of agents.json'
    assert hit.hint == ('did you mean "reader"?',)
    hit = only("BOARD002", workflow(member("reader"), declared=[]))
    assert hit.hint == ('add {"agent_name": "reader"} to agents.json',)


def test_BOARD003_an_agent_that_is_misspelt_there_takes_part():
    assert hits("BOARD003", workflow(member("redaer"), declared=[{"agent_name": "reader"}])) == []
    assert found("BOARD003", workflow(declared=[{"agent_name": "reader"}])) == [
        (("agents", 0, "agent_name"), "reader is not on the board, so nothing ever wakes it")
    ]


def test_BOARD005_a_key_to_join_by_is_of_a_type():
    by = {"News": "id", "Note": "id", "Nots": "id"}
    assert found("BOARD005", consuming(join={"by": by})) == [
        (
            (*CONSUMED, "join", "by", "Nots"),
            'a join of reader has a key for "Nots", which is no type of the board',
        )
    ]


def test_BOARD005_ticks_may_be_looked_for():
    filters = {"types": ["Tick", "News"]}
    summary = {"kind": "summary", "provider": {"kind": "empty"}, "templates": {"Tick": ""}}
    assert hits("BOARD005", seeing({"kind": "filtered", "filters": filters})) == []
    assert hits("BOARD005", seeing(summary)) == []


def test_BOARD007_the_name_of_what_schedules_publish():
    hit = only("BOARD007", workflow(artifacts=[{"name": "Tick", "schema": OBJECT}]))
    assert hit.message == "Tick is the type of what schedules publish"


def test_BOARD008_a_type_that_is_misspelt_is_used():
    subject = workflow(member(consumes=[{"types": ["Newz"]}], publishes=[{"type": "Note"}]))
    assert hits("BOARD008", subject) == []


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}, None),
        ({"allOf": [{"type": "object"}]}, None),
        ({"properties": {}}, None),
        ({}, "describes no object, and payloads are objects"),
        ({"$ref": "https://a.b/c"}, "cannot be used: $ref leads nowhere"),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}},
            "describes no object, and payloads are objects",
        ),
    ],
)
def test_BOARD009_payloads_are_objects(schema, fault):
    subject = workflow(artifacts=[{"name": "News", "schema": schema}, "Story"])
    assert [it.message for it in hits("BOARD009", subject)] == (
        [f"the schema of News {fault}"] if fault else []
    )


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        ({"engines": [{"kind": "model"}, {"kind": "function", "function": "R"}]},
         ("engines", 1, "function")),
        ({"best_of": {"n": 2, "score": "R"}}, ("best_of", "score")),
        ({"components": [{"component": "R", "hooks": ["error"]}]}, ("components", 0, "component")),
        ({"publishes": [{"type": "Note", "visibility": "R"}]}, ("publishes", 0, "visibility")),
        ({"publishes": [{"type": "Note", "where": "R"}]}, ("publishes", 0, "where")),
        ({"publishes": [{"type": "Note", "validate": "R"}]}, ("publishes", 0, "validate")),
        ({"consumes": [{"types": ["News"], "where": "R"}]}, ("consumes", 0, "where")),
        ({"consumes": [{"types": ["News"], "join": {"function": "R"}}]},
         ("consumes", 0, "join", "function")),
        ({"context": {"kind": "custom", "provider": "R"}}, ("context", "provider")),
        ({"fallback": {"kind": "composite", "providers": [
            {"kind": "empty"},
            {"kind": "redacting", "provider": {"kind": "empty"}, "transform": {"id": "R"}}]}},
         ("fallback", "providers", 1, "transform", "id")),
        ({"engines": [{"kind": "model", "context": {"kind": "custom", "provider": "R"}}]},
         ("engines", 0, "context", "provider")),
        ({"consumes": [{"types": ["News"], "context": {"kind": "summary", "provider":
            {"kind": "custom", "provider": "R"}}}]},
         ("consumes", 0, "context", "provider", "provider")),
    ],
)  # fmt: skip
def test_BOARD013_every_reference_is_looked_up(agent, path):
    def naming(reference: str) -> Subject:
        return workflow(json.loads(json.dumps(member(**agent)).replace('"R"', f'"{reference}"')))

    hit = only("BOARD013", naming("tools.desk:is_lokal"))
    assert hit.path == (*READER, *path)
    assert hit.message == (
        "tools.desk:is_lokal cannot be found: tools/desk.py does not define is_lokal"
    )
    assert hit.hint == ("did you mean tools.desk:is_local?",)
    assert hits("BOARD013", naming("tools.desk:is_local")) == []
    assert hits("BOARD013", naming("tools.desk:Desk.Inner")) == []
    assert only("BOARD014", naming("local:is_local")).path == (*READER, *path)


@pytest.mark.parametrize(
    ("reference", "folder", "hint"),
    [
        ("newsroom.checks:check", "Desk", None),
        ("tools.checks:check", "", None),
        ("tools.checks:check", "Desk", "add the file tools/checks.py"),
        ("tools.dsk:is_local", "", "did you mean tools.desk:is_local?"),
        ("local:check", "", None),
    ],
)
def test_BOARD013_what_is_installed_is_not_looked_up(reference, folder, hint):
    engines = [{"kind": "function", "function": reference}]
    subject = workflow(member(engines=engines), folder=folder)
    assert [it.hint for it in hits("BOARD013", subject)] == ([(hint,)] if hint else [])


def test_BOARD014_code_may_name_what_it_has():
    engines = [{"kind": "function", "function": "local:check"}]
    assert hits("BOARD014", workflow(member(engines=engines), folder="")) == []
    hit = only("BOARD014", workflow(member(engines=engines)))
    assert hit.hint == ("write check into a file of the package: tools.code:check",)


def test_TOOL007_files_that_a_board_names_are_used():
    (rule,) = [it for it in RULES if it.code == "TOOL007"]
    where = {"consumes": [{"types": ["News"], "where": "tools.desk:is_local"}]}
    assert list(rule.check(workflow(member(**where)))) == []
    assert len(list(rule.check(workflow(member())))) == 1


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("id == 'x' and size > 2", None),
        ("tools.desk:is_local", None),
        ("sise > 2", 'has no field "sise"'),
    ],
)
def test_BOARD012_conditions_ask_for_fields_of_all_types(where, message):
    said = [it.message for it in hits("BOARD012", consuming(where=where))]
    assert said == ([f"News {message}", f"Note {message}"] if message else [])


def test_BOARD012_places_and_hints():
    hit = only(
        "BOARD012", workflow(member(publishes=[{"type": "Note", "validate": "id and sise > 2"}]))
    )
    assert (hit.path, hit.offset, hit.length) == ((*READER, "publishes", 0, "validate"), 7, 4)
    assert hit.hint == ('did you mean "size"?',)
    hit = only(
        "BOARD012", workflow(member(publishes=[{"type": "Note", "validate": "colour == 'red'"}]))
    )
    assert hit.hint == ("its fields are id and size",)


def test_BOARD012_what_a_type_leaves_open_is_not_asked():
    artifacts = [{"name": "News", "schema": {"type": "object"}}, "Story", "Empty"]
    models = [{"name": "Empty", "fields": {}}]
    fields = {"artifacts": artifacts, "parts": {"models": models}}
    asked = workflow(member(consumes=[{"types": ["News", "Story"], "where": "a"}]), **fields)
    assert hits("BOARD012", asked) == []
    asked = workflow(member(consumes=[{"types": ["Empty"], "where": "a"}]), **fields)
    assert only("BOARD012", asked).hint == ("it has no fields",)


def test_BOARD012_templates_and_keys():
    summary = {
        "kind": "summary",
        "provider": {"kind": "empty"},
        "templates": {"News": "{id}: {sise}", "Tick": "{iteration}"},
    }
    hit = only("BOARD012", seeing(summary))
    assert (hit.path, hit.offset) == ((*READER, "context", "templates", "News"), 7)
    assert found("BOARD012", consuming(join={"by": "id.of"})) == [
        ((*CONSUMED, "join", "by"), f'{type_} has no field "id.of"') for type_ in ("News", "Note")
    ]


@pytest.mark.parametrize(
    ("join", "message"),
    [
        ({}, "the join has no key"),
        ({"by": "id", "function": "tools.desk:key"}, "the join has two keys"),
        ({"by": {"Note": "id"}}, "the join has no key for News"),
        ({"by": "id"}, None),
        ({"by": {"News": "id", "Note": "id"}}, None),
    ],
)
def test_BOARD015_one_key_for_each_type(join, message):
    assert [it.message for it in hits("BOARD015", consuming(join=join))] == (
        [message] if message else []
    )


@pytest.mark.parametrize("window", ["within_seconds", "within_count"])
def test_BOARD016_either_window_is_enough(window):
    assert hits("BOARD016", consuming(join={"by": "id", window: 3})) == []
    assert only("BOARD016", consuming(join={"by": "id"})).path == (*CONSUMED, "join")


@pytest.mark.parametrize("end", ["size", "timeout_seconds"])
def test_BOARD017_either_end_is_enough(end):
    assert hits("BOARD017", consuming(batch={end: 3})) == []


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({"daily": "06:00"}, None),
        ({"at": "2026-01-31T09:00:00Z", "delay_seconds": 3}, None),
        ({"cron": "*/5 * * * *", "max_repeats": 2}, None),
        ({}, "the schedule of reader does not say when"),
        (
            {"every_seconds": 3, "daily": "06:00"},
            "the schedule of reader says every_seconds and daily",
        ),
        ({"cron": "61 * * * *"}, "the schedule of reader cannot be read: '61' is out of range"),
    ],
)
def test_BOARD018_one_way_that_can_be_read(schedule, message):
    said = [it.message for it in hits("BOARD018", workflow(member(schedule=schedule)))]
    assert said == ([message] if message else [])


@pytest.mark.parametrize(
    ("by", "known"), [("user:ada", True), ("schedule:reader", True), ("ada", False)]
)
def test_BOARD020_what_comes_from_outside_has_a_name_too(by, known):
    assert len(hits("BOARD020", consuming(from_agents=[by]))) == (0 if known else 1)


def test_BOARD020_and_BOARD021_see_behind_delays_and_not_into_code():
    private = {"kind": "private", "agents": ["reader", "boss"]}
    later = {"kind": "after", "seconds": 3, "then": {"kind": "after", "seconds": 2}}
    labelled = {"kind": "labelled", "labels": ["staff", "chief"]}
    publishes = [
        {"type": "Note", "visibility": {"kind": "after", "seconds": 1, "then": private}},
        {"type": "News", "visibility": {**later, "then": {**later["then"], "then": labelled}}},
        {"type": "News", "visibility": "tools.desk:is_local"},
    ]
    subject = workflow(member(publishes=publishes, labels=["staff"]))
    assert only("BOARD020", subject).path == (
        *READER, "publishes", 0, "visibility", "then", "agents", 1,
    )  # fmt: skip
    hit = only("BOARD021", subject)
    assert hit.path == (*READER, "publishes", 1, "visibility", "then", "then", "labels", 1)
    assert hit.hint == ("give the label to an agent",)


def test_BOARD022_components_of_the_board_have_its_hooks():
    def with_hooks(*hooks: str) -> Subject:
        return workflow(components=[{"component": "tools.desk:Desk", "hooks": hooks}])

    assert hits("BOARD022", with_hooks("artifact_published", "before_schedule")) == []
    assert only("BOARD022", with_hooks("error", "pre_consume")).message == (
        "tools.desk:Desk is for the whole board, and error and pre_consume for an agent"
    )


REDACTED = {"kind": "redacting", "provider": {"kind": "correlated"}}


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({**REDACTED, "transform": {"id": "tools.desk:is_local"}}, None),
        ({**REDACTED, "drop": ["id"]}, None),
        (REDACTED, "drops nothing"),
        ({"kind": "filtered", "limit": 3, "filters": {"limit": 3}}, None),
        (
            {"kind": "filtered", "limit": 3, "filters": {"limit": 4}},
            "has two limits, of which 3 counts",
        ),
        (
            {
                "kind": "filtered",
                "filters": {"since": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
            },
            "gives nothing: its filters exclude each other",
        ),
        (
            {"kind": "filtered", "filters": {"tags": {"include": ["a"], "exclude": ["a", "b"]}}},
            "gives nothing: its filters exclude each other",
        ),
        (
            {"kind": "filtered", "filters": {"tags": {"include": ["a", "c"], "exclude": ["a"]}}},
            None,
        ),
    ],
)
def test_BOARD023_providers_do_something(context, message):
    said = [it.message for it in hits("BOARD023", seeing(context))]
    assert said == ([f"a provider of reader {message}"] if message else [])


def test_BOARD023_a_key_that_is_dropped_is_one():
    hit = only("BOARD023", seeing({**REDACTED, "drop": ["id", "Size"]}))
    assert hit.message == 'a provider of reader drops "Size", which no artifact has'
    assert hit.fix is not None


def test_BOARD023_keys_are_not_known_where_a_type_says_nothing():
    artifacts = [*TYPES, {"name": "Open", "schema": {"type": "object"}}]
    subject = workflow(member(context={**REDACTED, "drop": ["colour"]}), artifacts=artifacts)
    assert hits("BOARD023", subject) == []


def test_BOARD024_a_component_fills_the_state():
    clerk = {"component": "tools.desk:Desk", "hooks": ["pre_consume"]}
    assert len(hits("BOARD024", seeing({"kind": "state"}))) == 1
    assert hits("BOARD024", seeing({"kind": "state"}, components=[clerk])) == []
    board_wide = [{**clerk, "hooks": ["before_schedule"]}]
    subject = workflow(member(context={"kind": "state"}), components=board_wide)
    assert hits("BOARD024", subject) == []


def test_BOARD025_conditions_that_cannot_be_read_are_left_to_BOARD011():
    assert hits("BOARD025", consuming(activation="News >")) == []
    assert hits("BOARD025", consuming(activation="News > 2")) == []
    assert hits("BOARD025", consuming(scope="all")) == []
    assert len(hits("BOARD011", consuming(activation="News >"))) == 1
    assert hits("BOARD011", consuming(activation="News > 2", where="id")) == []


@pytest.mark.parametrize(
    ("fields", "warned"),
    [
        ({}, True),
        ({"from_agents": ["reader"]}, True),
        ({"from_agents": ["editor"]}, False),
        ({"mode": "direct"}, False),
    ],
)
def test_BOARD026_wakes_itself_by_what_it_consumes(fields, warned):
    agent = {
        "consumes": [{"types": ["News"], **fields}],
        "publishes": [{"type": "News"}],
        "prevent_self_trigger": False,
    }
    assert len(hits("BOARD026", workflow(member(**agent)))) == warned
    assert hits("BOARD026", workflow(member(**{**agent, "prevent_self_trigger": True}))) == []


@pytest.mark.parametrize(
    ("engines", "declared", "warned"),
    [
        ([], {}, True),
        ([], {"description": "Reads."}, False),
        ([], {"prompt_sections": [{"id": "a", "content": "Read."}]}, False),
        ([{"kind": "model", "instructions": "Read."}], {}, False),
        ([{"kind": "function", "function": "tools.desk:is_local"}], {}, False),
        ([{"kind": "function", "function": "tools.desk:is_local"}, {"kind": "model"}], {}, True),
    ],
)
def test_BOARD027_models_are_told_what_to_do(engines, declared, warned):
    subject = workflow(member(engines=engines), declared=[{"agent_name": "reader", **declared}])
    assert len(hits("BOARD027", subject)) == warned
    assert hits("BOARD027", workflow(member(), declared=[])) == []


SEMANTIC = {"kind": "semantic", "query": "floods"}


def test_what_a_semantic_provider_looks_for_is_there():
    def looking(**filters: Any) -> Subject:
        return seeing({**SEMANTIC, "filters": filters})

    assert only("BOARD005", looking(types=["News", "Nots"])).path[-1] == 1
    assert only("BOARD020", looking(producers=["raeder"])).path[-1] == 0
    tags = {"include": ["a"], "exclude": ["a"]}
    assert "exclude each other" in only("BOARD023", looking(tags=tags)).message
    assert hits("BOARD023", looking(types=["News"])) == []


def test_BOARD012_the_field_of_a_query_is_in_a_type_that_wakes_the_agent():
    other = {"name": "Other", "schema": {"type": "object", "properties": {"word": OBJECT}}}

    def asking(field: str, *types: str) -> Subject:
        wakes = [{"types": [it]} for it in types]
        agent = member(context={"kind": "semantic", "query_field": field}, consumes=wakes)
        return workflow(agent, artifacts=[*TYPES, other])

    assert hits("BOARD012", asking("id", "News", "Other")) == []
    assert hits("BOARD012", asking("word.id", "News", "Other")) == []
    assert only("BOARD012", asking("idd", "News", "Other")).message == 'News has no field "idd"'
    assert hits("BOARD012", seeing(SEMANTIC)) == []


def test_BOARD029_a_threshold_is_compared():
    assert only("BOARD029", consuming(threshold=0.5)).path[-1] == "threshold"
    assert hits("BOARD029", consuming(threshold=0.5, semantic_match="floods")) == []
    assert hits("BOARD029", consuming()) == []


def test_BOARD030_one_query():
    assert only("BOARD030", seeing({**SEMANTIC, "query_field": "id"})).path[-1] == "query_field"
    assert hits("BOARD030", seeing(SEMANTIC)) == []
    assert hits("BOARD030", seeing({"kind": "recent"})) == []


def test_what_compares_meanings_is_known():
    def found(subject: Subject) -> list[str]:
        return list(comparisons(subject.spec))

    assert found(seeing({"kind": "recent"})) == []
    assert found(seeing(SEMANTIC)) == ["a provider of reader is semantic"]
    matching = consuming(semantic_match="floods")
    assert found(matching) == ["a subscription of reader has semantic_match"]
