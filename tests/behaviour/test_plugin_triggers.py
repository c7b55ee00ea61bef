"""Kinds of triggers that plug-ins add: one class each, and nothing of Weft's own is touched."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import BaseModel, ConfigDict, Field

from support.boundary_play import declared, derived, of
from support.run_play import play
from weft.app.installation import PluginTriggers
from weft.engine.events import ModelReplied, RunEnded, TurnEnded, VariableRefused, VariableSet
from weft.engine.variables.trigger_index import Fires
from weft.errors import CheckFailed, LinkError, SetupError
from weft.inspect.replay import check_replay
from weft.packages.reader import read_package
from weft.packages.review import refuse_errors
from weft.runtime.workflow import Linking
from weft.spec.workflow import digest
from weft.testing.models import ScriptedModel

PIPELINE = {"orchestration_pattern": "Pipeline", "human_in_the_loop": False}


class Words(BaseModel):
    """How many words a reply must have."""

    model_config = ConfigDict(extra="forbid")
    at_least: int = Field(ge=1)
    agent: str | None = None


class WordCount:
    """Fires when an agent says many words, with their number."""

    settings = Words

    def fires(self, settings, event, state):
        if not isinstance(event.data, ModelReplied):
            return None
        assert isinstance(settings, Words)
        spoken = state.active[event.turn].agent
        count = len(event.data.text.split())
        wanted = settings.agent in (None, spoken) and count >= settings.at_least
        return Fires(count) if wanted else None


KINDS = Linking(kinds={"word_count": WordCount()})


def counting(*, orchestrator=PIPELINE, **settings):
    trigger = {"type": "x:word_count", **settings}
    variables = {"words": derived("int", 0, trigger)}
    return declared("A", "B", variables=variables, orchestrator=orchestrator)


def values(played):
    return [event.value for event in of(played, VariableSet)]


@pytest.mark.parametrize(
    ("settings", "found"),
    [({"at_least": 2}, [3, 2]), ({"at_least": 3}, [3]), ({"at_least": 2, "agent": "B"}, [2])],
)
def test_a_kind_of_a_plug_in_sets_what_its_class_says_by_its_settings(settings, found):
    model = ScriptedModel(["one two three", "four five"])
    played = play(counting(**settings), model, linking=KINDS)
    assert values(played) == found
    assert {event.writer for event in of(played, VariableSet)} == {"trigger"}
    assert check_replay(played.workflow, played.run, played.events) == []


class Nothing(BaseModel):
    """There is nothing to be said."""


class TurnIsOver:
    """Fires when an agent has taken its turn."""

    settings = Nothing

    def fires(self, _settings, event, _state):
        return Fires(value=True) if isinstance(event.data, TurnEnded) else None


def test_plugin_values_count_for_decisions_of_the_same_event():
    rules = [
        {"source_agent": "A", "target_agent": "terminate", "condition": "over", "reason": "seen"},
        {"source_agent": "A", "target_agent": "terminate", "reason": "not seen"},
    ]
    variables = {"over": derived("bool", False, {"type": "x:turn_is_over"})}
    spec = declared("A", variables=variables, handoffs=rules)
    linking = Linking(kinds={"turn_is_over": TurnIsOver()})
    played = play(spec, ScriptedModel(["done"]), linking=linking)
    assert of(played, RunEnded)[0].reason == "seen"
    assert check_replay(played.workflow, played.run, played.events) == []


def test_its_name_and_its_settings_are_part_of_the_digest_and_come_back_as_they_were():
    one, other = counting(at_least=2), counting(at_least=3)
    assert digest(one, {}) != digest(other, {})
    assert digest(one, {}) == digest(counting(at_least=2), {})
    (trigger,) = one.variables["words"].source.triggers
    assert trigger.name == "word_count"
    assert trigger.settings == {"at_least": 2}
    assert trigger.model_dump() == {"type": "x:word_count", "at_least": 2}


def test_a_rule_may_go_by_what_a_plug_in_sets():
    spec = counting(at_least=1, orchestrator={"human_in_the_loop": False})
    rules = [
        {"source_agent": "A", "target_agent": "B", "condition": "words > 2"},
        {"source_agent": "A", "target_agent": "terminate"},
    ]
    spec = spec.model_copy(update={"handoffs": declared(handoffs=rules).handoffs})
    model = ScriptedModel(["one two three", "four"])
    play(spec, model, linking=KINDS)
    assert [request.agent for request in model.requests] == ["A", "B"]


@pytest.mark.parametrize(
    ("settings", "linking", "told"),
    [
        ({"at_least": 2}, Linking(), "x:word_count, which no installed plug-in adds"),
        ({}, KINDS, "whose settings do not fit (at_least: Field required)"),
        ({"at_least": 0}, KINDS, "at_least: Input should be greater than or equal to 1"),
        ({"at_least": 1, "most": 2}, KINDS, "most: Extra inputs are not permitted"),
    ],
)
def test_a_kind_that_is_not_there_or_settings_that_do_not_fit_are_refused(settings, linking, told):
    with pytest.raises(LinkError) as refused:
        play(counting(**settings), ScriptedModel([]), linking=linking)
    (finding,) = refused.value.findings
    assert told in finding.message
    assert finding.code == "LINK003"
    assert "triggers.0" in str(finding.place)


class Always:
    """Wants to set its variable whatever happens."""

    settings = Words

    def __init__(self, answer):
        self._answer = answer

    def fires(self, settings, event, state):
        assert settings.at_least == 1
        return self._answer(event, state)


def always(answer):
    return Linking(kinds={"word_count": Always(answer)})


def fails(event, state):
    raise ZeroDivisionError("oops")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (fails, "the trigger x:word_count failed: ZeroDivisionError: oops"),
        (lambda *_: True, "the trigger x:word_count failed: AttributeError"),
        (lambda *_: SimpleNamespace(value="much"), 'words: expected int, got "much"'),
    ],
    ids=["raises", "returns nonsense", "does not fit"],
)
def test_a_plug_in_that_is_wrong_sets_nothing_and_the_journal_says_so(answer, told):
    model = ScriptedModel(["one", "two"])
    played = play(counting(at_least=1), model, linking=always(answer))
    refused = of(played, VariableRefused)
    assert refused
    assert all(told in item.error for item in refused)
    assert values(played) == []
    assert played.at(RunEnded).data.outcome == "completed"
    assert check_replay(played.workflow, played.run, played.events) == []


def test_plugin_is_not_triggered_by_its_own_values():
    trigger = {"type": "x:word_count", "at_least": 1}
    many = {"type": "computed", "computation": "words > 2", "inputs": ["words"]}
    variables = {"words": derived("int", 0, trigger), "many": {"type": "bool", "source": many}}
    spec = declared(variables=variables)
    counted = always(lambda event, _: Fires(event.seq))
    played = play(spec, ScriptedModel(["one"]), linking=counted)
    assert played.at(RunEnded).data.outcome == "completed"
    assert len(played.events) < 40
    assert check_replay(played.workflow, played.run, played.events) == []


def test_a_transition_that_waits_for_a_plug_in_leads_where_it_says():
    step = {"from": "short", "to": "long", "trigger": {"type": "x:word_count", "at_least": 2}}
    source = {"type": "derived", "default": "short", "transitions": [step]}
    spec = declared(
        "A", "B", variables={"size": {"type": "str", "source": source}}, orchestrator=PIPELINE
    )
    played = play(spec, ScriptedModel(["one two", "one two three"]), linking=KINDS)
    assert values(played) == ["long"]


# As other distributions bring them

MODULE = """
from pydantic import BaseModel
from weft.engine.events import RequestAnswered
from weft.engine.variables.trigger_index import Fires


class Shouting(BaseModel):
    letters: int


class Shout:
    settings = Shouting

    def fires(self, settings, event, state):
        text = getattr(event.data, "value", None) if isinstance(event.data, RequestAnswered) else ""
        loud = sum(letter.isupper() for letter in str(text))
        return Fires(loud) if loud >= settings.letters else None
"""
PACKAGE = {
    "orchestrator.json": {"workflow_name": "Loud", "initial_agent": "A"},
    "agents.json": {
        "agents": [{"agent_name": "A", "prompt_sections": [{"id": "r", "content": "Listen."}]}]
    },
    "handoffs.json": {"handoff_rules": [{"source_agent": "A", "target_agent": "user"}]},
    "context_variables.json": {
        "definitions": {
            "loud": {
                "type": "int",
                "source": {
                    "type": "derived",
                    "default": 0,
                    "triggers": [{"type": "x:shout", "letters": 3}],
                },
            }
        },
        "agents": {"A": {"variables": ["loud"]}},
    },
}
SCRIPT = """
import sys, weft
for said in ("hello", "HELLO"):
    print(weft.run("Loud", said, workspace=sys.argv[1], model="sample").variables["loud"])
"""


def install(folder: Path, module: str = MODULE, name: str = "Shout") -> Path:
    """Lay a distribution down as an installer would."""
    about = folder / "shouting-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "shouting.py").write_text(module)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[weft.triggers]\nshout = shouting:{name}\n")
    return folder


@pytest.fixture
def workspace(tmp_path):
    package = tmp_path / "space" / "workflows" / "Loud"
    package.mkdir(parents=True)
    for file, content in PACKAGE.items():
        (package / file).write_text(json.dumps(content))
    return tmp_path / "space"


def python(*command: str, also: Path | None = None) -> subprocess.CompletedProcess[str]:
    paths = [str(also)] if also else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *sys.path])}
    done = [sys.executable, *command]
    return subprocess.run(
        done, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_an_installed_distribution_adds_a_kind_and_without_it_the_package_is_refused(
    workspace, tmp_path
):
    plug_in = install(tmp_path / "site")
    done = python("-c", SCRIPT, str(workspace), also=plug_in)
    assert (done.stdout.split(), done.stderr) == (["0", "5"], "")
    checked = python("-m", "weft", "check", str(workspace), also=plug_in)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    without = python("-m", "weft", "check", str(workspace))
    assert without.returncode == 1
    assert "LINK003" in without.stdout
    assert "x:shout" in without.stdout


def test_installed_models_are_looked_up_on_demand(workspace, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(install(tmp_path / "site")))
    monkeypatch.delitem(sys.modules, "shouting", raising=False)
    kinds = PluginTriggers()
    package = read_package(workspace / "workflows" / "Loud")
    assert "shouting" not in sys.modules, "nothing registers at import"
    refuse_errors(package, kinds=kinds)
    assert set(kinds) == {"shout"}
    assert len(kinds) == 1
    with pytest.raises(CheckFailed):
        refuse_errors(package)


@pytest.mark.parametrize(
    ("module", "name", "told"),
    [("1 / 0", "Shout", "division by zero"), (MODULE, "Whisper", "Whisper")],
    ids=["breaks", "lacks the class"],
)
def test_a_plug_in_that_cannot_be_loaded_is_a_fault_of_the_setup(
    tmp_path, monkeypatch, module, name, told
):
    monkeypatch.syspath_prepend(str(install(tmp_path / "site", module, name)))
    monkeypatch.delitem(sys.modules, "shouting", raising=False)
    with pytest.raises(SetupError, match=told) as refused:
        len(PluginTriggers())
    assert "x:shout" in str(refused.value)
    assert "uninstall" in (refused.value.hint or "")
