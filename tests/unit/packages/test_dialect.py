"""Older spellings: each read as the present one, pointed out where it stands, never guessed at."""

import pytest

from weft.packages.edit.spellings import DIALECTS
from weft.packages.reader import open_document
from weft.packages.text.documents import dump, read_text

#: What is said of variables without the wrapper around them.
BARE = "everything is now under context_variables"


def rewritten(stem, data):
    """Return what a file is read as, and what is said about it."""
    declared = open_document(f"{stem}.json", read_text(f"{stem}.json", dump(data, "json")), stem)
    return declared.rewrite.data, [change.message for change in declared.rewrite.changes]


def origin(stem, data, path):
    """Return where in the author's file a value of the rewritten data stood."""
    declared = open_document(f"{stem}.json", read_text(f"{stem}.json", dump(data, "json")), stem)
    return declared.rewrite.origin_path(path)


def source(**entry):
    data, said = rewritten("context_variables", wrapped(v={"type": "any", "source": entry}))
    return data["context_variables"]["definitions"]["v"]["source"], said


def wrapped(**definitions):
    return {"context_variables": {"definitions": definitions}}


@pytest.mark.parametrize("stem", DIALECTS)
@pytest.mark.parametrize("data", [[], "text", 3, None, {}])
def test_what_is_no_file_of_the_kind_is_left_alone(stem, data):
    expected = {"context_variables": {}} if stem == "context_variables" and data == {} else data
    assert rewritten(stem, data) == (expected, [])


@pytest.mark.parametrize(
    ("stem", "data"),
    [
        ("agents", {"agents": [3, {"agent_name": "A"}]}),
        ("handoffs", {"handoff_rules": [3, {"target_agent": 4}, {"target_agent": "Friend"}]}),
        ("handoffs", {"handoff_rules": 3}),
        ("tools", {"tools": 3, "lifecycle_tools": "x"}),
        ("hooks", {"hooks": [3]}),
        ("hooks", {"hooks": [{"file": 4}]}),
        ("structured_outputs", {"models": [{"fields": 3}, {"fields": {"f": 3}}], "registry": 3}),
        ("context_variables", {"context_variables": 3}),
        ("context_variables", {"context_variables": {"definitions": [{"name": 3}]}}),
        ("context_variables", {"context_variables": {"definitions": [3]}}),
        ("context_variables", {"context_variables": {"definitions": {"v": 3}, "agents": 3}}),
        ("context_variables", {"context_variables": {"derived_variables": [3]}}),
        ("context_variables", {"context_variables": {"derived_variables": 3}}),
        ("context_variables", {"context_variables": {"agents": {"A": 3}}}),
    ],
)
def test_what_is_not_understood_is_left_for_the_model_to_refuse(stem, data):
    assert rewritten(stem, data) == (data, [])


def test_orchestrator():
    data, said = rewritten("orchestrator", {"human_in_loop": True, "trigger": "webhook"})
    assert data == {"human_in_the_loop": True, "trigger": {"type": "webhook"}}
    assert said == [
        "human_in_loop is now human_in_the_loop",
        'trigger is now {"type": "webhook"}',
    ]


def test_both_spellings_at_once_are_not_merged():
    data = {"human_in_loop": True, "human_in_the_loop": False}
    assert rewritten("orchestrator", data) == (data, [])


def test_agents_by_name():
    data, said = rewritten("agents", {"agents": {"A": {"agent_type": "router"}, "B": 3}})
    assert data == {"agents": [{"agent_type": "router", "agent_name": "A"}, 3]}
    assert said == ["agents is now a list; each entry has its agent_name"]
    old = {"agents": {"A": {"agent_type": "router"}}}
    assert origin("agents", old, ("agents", 0, "agent_type")) == ("agents", "A", "agent_type")


@pytest.mark.parametrize("mode", [None, "text"])
def test_that_an_agent_makes_text_goes_without_saying(mode):
    data, said = rewritten("agents", {"agents": [{"agent_name": "A", "generation_mode": mode}]})
    assert (data, said) == ({"agents": [{"agent_name": "A"}]}, [])


@pytest.mark.parametrize(
    ("word", "target"),
    [
        ("User", "user"),
        ("RevertToUserTarget", "user"),
        ("TERMINATE", "terminate"),
        ("TerminateTarget", "terminate"),
        ("end", "terminate"),
    ],
)
def test_other_words_for_user_and_end(word, target):
    data, said = rewritten("handoffs", {"handoff_rules": [{"target_agent": word}]})
    assert data == {"handoff_rules": [{"target_agent": target}]}
    assert said == [f'target "{word}" is now "{target}"']


def test_handoffs_under_another_key_or_wrapped():
    rule = {"target_agent": "user"}
    assert rewritten("handoffs", {"handoffs": [rule]}) == (
        {"handoff_rules": [rule]},
        ["handoffs is now handoff_rules"],
    )
    old = {"handoffs": {"handoff_rules": [rule]}}
    assert rewritten("handoffs", old) == (
        {"handoff_rules": [rule]},
        ["the wrapper handoffs is not written any more"],
    )
    assert origin("handoffs", old, ("handoff_rules", 0)) == ("handoffs", "handoff_rules", 0)


def test_nulls_and_empty_conditions_of_handoffs():
    rule = {"condition": "", "condition_scope": None, "condition_type": None, "priority": None}
    assert rewritten("handoffs", {"handoff_rules": [rule]}) == (
        {"handoff_rules": [{}]},
        ["no condition is written by leaving it out"],
    )


def test_type_of_a_tool_follows_from_what_it_has():
    tools = [{"ui": {"component": "C", "display": "inline"}}, {"ui": None}, {}]
    data, said = rewritten("tools", {"tools": tools, "lifecycle_tools": [{}]})
    assert data == {
        "tools": [
            {"ui": {"component": "C", "mode": "inline"}, "tool_type": "UI_Tool"},
            {"tool_type": "Agent_Tool"},
            {"tool_type": "Agent_Tool"},
        ],
        "lifecycle_tools": [{"tool_type": "Lifecycle_Tool"}],
    }
    assert said == ["ui.display is now ui.mode"]


def test_lifecycle_tools_among_the_others():
    first, second = {"tool_type": "Agent_Tool"}, {"tool_type": "Lifecycle_Tool", "file": "f"}
    data, said = rewritten("tools", {"tools": [second, first]})
    assert data == {"tools": [first], "lifecycle_tools": [second]}
    assert said == ["a Lifecycle_Tool is now under lifecycle_tools"]
    old = {"tools": [second, first]}
    assert origin("tools", old, ("lifecycle_tools", 0, "file")) == ("tools", 0, "file")
    assert origin("tools", old, ("tools", 0, "tool_type")) == ("tools", 1, "tool_type")


def test_lifecycle_tools_are_not_moved_into_something_else():
    data = {"tools": [{"tool_type": "Lifecycle_Tool"}], "lifecycle_tools": 3}
    assert rewritten("tools", data) == (data, [])


def test_hooks():
    old = {"hooks": [{"filename": "hooks/h.py", "trigger": "before_chat"}]}
    assert rewritten("hooks", old) == (
        {"hooks": [{"file": "h.py", "hook_type": "before_chat"}]},
        ["filename is now file", "trigger is now hook_type"],
    )
    assert origin("hooks", old, ("hooks", 0, "file")) == ("hooks", 0, "filename")


def test_structured_outputs_as_maps():
    old = {
        "structured_outputs": {
            "models": {"M": {"fields": {"a": "str", "b": {"type": "list", "items": "int"}}}},
            "registry": {"A": "M", "B": None},
        }
    }
    data, said = rewritten("structured_outputs", old)
    assert data == {
        "models": [{"fields": {"a": {"type": "str"}, "b": {"type": "list[int]"}}, "name": "M"}],
        "registry": [{"agent": "A", "model": "M"}, {"agent": "B", "model": None}],
    }
    assert said == [
        "the wrapper structured_outputs is not written any more",
        "models is now a list; each entry has its name",
        "registry is now a list of agent and model",
        'the type is now written "list[int]"',
    ]
    assert origin("structured_outputs", old, ("registry", 1, "model")) == (
        "structured_outputs",
        "registry",
        "B",
        "model",
    )


def test_type_given_as_an_object():
    old = {"models": [{"fields": {"a": {"type": {"type": "optional", "of": "str"}}}}]}
    data, _ = rewritten("structured_outputs", old)
    assert data["models"][0]["fields"]["a"] == {"type": "optional[str]"}


def test_type_object_that_means_nothing_stays():
    old = {"models": [{"fields": {"a": {"type": "list", "items": "strng"}}}]}
    assert rewritten("structured_outputs", old) == (old, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("config", "environment"),
        ("data_reference", "database"),
        ("data_entity", "entity"),
        ("state", "derived"),
        ("defined", "database"),
        ("runtime", "derived"),
    ],
)
def test_other_names_of_sources(old, new):
    assert source(type=old) == ({"type": new}, [f'source "{old}" is now "{new}"'])


def test_keys_of_sources():
    entry, said = source(type="derived", initial=1, database_name="d", trigger=None)
    assert entry == {"type": "derived", "default": 1, "database": "d"}
    assert said == ["initial is now default", "database_name is now database"]


def test_default_under_two_keys_is_not_merged():
    entry, said = source(type="derived", initial=1, default=2)
    assert (entry, said) == ({"type": "derived", "initial": 1, "default": 2}, [])


def test_single_trigger():
    entry, said = source(type="derived", trigger={"type": "user_text"})
    assert entry == {"type": "derived", "triggers": [{"type": "user_text"}]}
    assert said == ["trigger is now the list triggers"]
    entry, said = source(type="derived", trigger={}, triggers=[])
    assert (entry, said) == ({"type": "derived", "trigger": {}, "triggers": []}, [])


def test_transitions_as_a_map():
    entry, said = source(type="derived", transitions={"a": ["b", "c"]})
    assert entry["transitions"] == [{"from": "a", "to": "b"}, {"from": "a", "to": "c"}]
    assert said == ["transitions is now a list of from and to"]
    assert source(type="derived", transitions=None) == ({"type": "derived"}, [])
    odd = {"type": "derived", "transitions": {"a": "b"}}
    assert source(**odd) == (odd, [])


def test_short_forms_of_cache_and_retry():
    entry, said = source(type="external", cache=60, retry=3)
    assert entry == {"type": "external", "cache": {"ttl_seconds": 60}, "retry": {"attempts": 3}}
    assert said == ['cache is now {"ttl_seconds": 60}', 'retry is now {"attempts": 3}']
    assert source(type="external", cache=True)[0]["cache"] is True


def test_variable_types_given_as_objects():
    entry = {"type": "literal", "values": ["a", "b"], "source": {"type": "derived"}}
    data, said = rewritten("context_variables", wrapped(v=entry))
    assert data["context_variables"]["definitions"]["v"]["type"] == 'literal["a", "b"]'
    assert said == ['the type is now written "literal["a", "b"]"']


@pytest.mark.parametrize(
    ("start", "type_"),
    [
        (True, "bool"),
        (1, "int"),
        (1.5, "float"),
        ("x", "str"),
        ([], "list"),
        ({}, "dict"),
        (None, "any"),
    ],
)
def test_type_left_out_follows_the_start_value(start, type_):
    data, _ = rewritten(
        "context_variables", wrapped(v={"source": {"type": "derived", "default": start}})
    )
    assert data["context_variables"]["definitions"]["v"]["type"] == type_


def test_definitions_as_a_list():
    old = {"definitions": [{"name": "v", "type": "str", "source": {"type": "derived"}}]}
    data, said = rewritten("context_variables", old)
    assert data == wrapped(v={"type": "str", "source": {"type": "derived"}})
    assert said == [BARE, "definitions is now a map by name"]


def test_definitions_with_one_name_twice_stay_a_list():
    old = {"context_variables": {"definitions": [{"name": "v"}, {"name": "v"}]}}
    assert rewritten("context_variables", old) == (old, [])


def test_lists_by_kind():
    old = {
        "environment_variables": [{"name": "e", "type": "str", "env_var": "E"}],
        "database_variables": [{"name": "d", "type": "str", "collection": "c"}],
        "declarative_variables": [{"name": "s", "value": 1}],
    }
    data, said = rewritten("context_variables", old)
    definitions = data["context_variables"]["definitions"]
    assert definitions == {
        "e": {"type": "str", "source": {"type": "environment", "env_var": "E"}},
        "s": {"source": {"type": "static", "value": 1}, "type": "int"},
        "d": {"type": "str", "source": {"type": "database", "collection": "c"}},
    }
    assert [message.split()[0] for message in said] == [
        "everything",
        "environment_variables",
        "declarative_variables",
        "database_variables",
    ]


KINDS = (
    "derived_variables",
    "environment_variables",
    "static_variables",
    "declarative_variables",
    "database_variables",
    "defined_variables",
    "runtime_variables",
)


@pytest.mark.parametrize("key", KINDS)
def test_an_empty_list_by_kind_declares_nothing(key):
    data, said = rewritten("context_variables", {"context_variables": {key: []}})
    assert data == {"context_variables": {"definitions": {}}}
    assert said == [f"{key} is now part of definitions"]


def test_defined_and_runtime_variables_are_lists_by_kind():
    old = {
        "defined_variables": [{"name": "d", "collection": "c", "database_name": "crm"}],
        "runtime_variables": [{"name": "r", "default": 3}],
    }
    data, _ = rewritten("context_variables", old)
    stored = {"type": "database", "collection": "c", "database": "crm"}
    assert data["context_variables"]["definitions"] == {
        "d": {"type": "any", "source": stored},
        "r": {"type": "int", "source": {"type": "derived", "default": 3}},
    }


def test_an_entry_of_a_list_by_kind_may_have_its_source_already():
    trigger = {"type": "agent_text", "agent": "A", "match": {"equals": "X"}}
    source = {"type": "derived", "default": False, "triggers": [trigger]}
    entry = {"name": "v", "type": "bool", "source": source}
    data, _ = rewritten("context_variables", {"derived_variables": [entry]})
    assert data["context_variables"]["definitions"]["v"] == {"type": "bool", "source": source}
    assert trigger["match"] == {"equals": "X"}


def test_lists_by_kind_never_overwrite_a_definition():
    old = {
        "context_variables": {
            "definitions": {"v": {"type": "str", "source": {"type": "derived"}}},
            "static_variables": [{"name": "v", "value": 1}],
        }
    }
    data, _ = rewritten("context_variables", old)
    assert "static_variables" in data["context_variables"]


def test_text_in_a_derived_list_is_matched_to_the_letter():
    trigger = {"type": "agent_text", "agent": "A", "match": {"equals": "X"}}
    entry = {"name": "v", "default": False, "triggers": [trigger, {"type": "user_text"}]}
    data, said = rewritten("context_variables", {"derived_variables": [entry]})
    read = data["context_variables"]["definitions"]["v"]["source"]["triggers"]
    assert read[0]["match"] == {"exact": "X"}
    assert "equals in derived_variables is now exact" in said


def test_keys_without_meaning():
    old = {"context_variables": {"variables": [], "exposures": []}}
    assert rewritten("context_variables", old) == (
        {"context_variables": {}},
        [
            "variables has no meaning any more and is not read",
            "exposures has no meaning any more and is not read",
        ],
    )


def test_bare_exposure_lists():
    old = {"ContextVariablesPlan": {"agents": {"A": ["x", "y"]}}}
    data, said = rewritten("context_variables", old)
    assert data == {"context_variables": {"agents": {"A": {"variables": ["x", "y"]}}}}
    assert said == [
        "ContextVariablesPlan is now context_variables",
        "A now lists its variables under variables",
    ]
    path = ("context_variables", "agents", "A", "variables", 1)
    assert origin("context_variables", old, path) == ("ContextVariablesPlan", "agents", "A", 1)


def test_wrapper_beside_other_keys_is_left_to_be_refused():
    for stem, inner in (("handoffs", "handoff_rules"), ("structured_outputs", "models")):
        data, said = rewritten(stem, {stem: {inner: []}, "other": 1})
        assert "other" in data
        assert "wrapper" not in " ".join(said)
