"""What comes from outside or is called at boundaries: servers, sources, functions, plug-ins."""

from typing import Final

from pydantic import BaseModel, ConfigDict

from behaviour.cases_mistake import Case, Rename, Swap, swapped_in
from weft.engine.events import Event, TurnEnded
from weft.engine.state import State
from weft.engine.variables.trigger_kinds import Fires, TriggerKinds

_FILE: Final = "context_variables.json"
_MOODS: Final = "tools/moods.py"

_in_agents: Final = swapped_in("agents.json")
_in_context: Final = swapped_in(_FILE)
_in_orchestrator: Final = swapped_in("orchestrator.json")
_in_tools: Final = swapped_in("tools.json")


class EveryNth(BaseModel):
    """How often."""

    model_config = ConfigDict(extra="forbid")

    n: int


class Nth:
    """Fires after every n-th turn: a kind of trigger that a plug-in adds."""

    settings = EveryNth

    def fires(self, settings: EveryNth, event: Event, state: State) -> Fires | None:
        """Tell whether it is the n-th turn."""
        over = isinstance(event.data, TurnEnded) and state.turns % settings.n == 0
        return Fires(value=True) if over else None


KINDS: Final[TriggerKinds] = {"every_nth": Nth()}

_COMMAND: Final = '"command": ["parcel-server", "--quiet"], "env": {"REGION": "eu"}'
_ANOTHER: Final = '"eu"}}'

_SERVERS: Final = [
    _in_tools("NAME011", '"parcels"', '"my parcels"', '"my parcels"'),
    _in_tools(
        "NAME011",
        _ANOTHER,
        _ANOTHER + ', {"name": "parcels" , "url": "https://a.b"}',
        '"parcels" ,',
    ),
    _in_tools("TOOL013", f", {_COMMAND}", "", '{"name": "parcels"'),
    _in_tools(
        "TOOL013", _COMMAND, f'{_COMMAND}, "url": "https://a.example"', '"https://a.example"'
    ),
    _in_tools(
        "TOOL013", '"command": ["parcel-server", "--quiet"]', '"url": "https://a.b"', '{"REGION'
    ),
    _in_tools("TOOL013", _COMMAND, '"url": "a.example"', '"a.example"'),
    _in_tools("TOOL013", '"eu"', '{"secret_env": "my region"}', '"my region"'),
    _in_tools("TOOL014", _COMMAND, '"url": "http://a.example/mcp"', '"http://a.example/mcp"'),
    _in_tools("BIND001", _ANOTHER, '"eu"}, "agents": ["Tech"]}', '"Tech"'),
    _in_tools("VAR005", '"eu"', '"eu", "API_KEY": "9f2c81d07be4"', '"9f2c81d07be4"'),
]

_SEARCHED: Final = '"search_by": "user_id"'
_FIELD: Final = ', "field": "plan"'
_SHOP: Final = '"value": "Corner Shop"}'

_SOURCES: Final = [
    _in_context("VAR022", _SEARCHED, '"query_template": {"a": {"$gr": 1}}', '{"a": {"$gr"'),
    _in_context("VAR022", _SEARCHED, '"query_template": {"app_id": "x"}', '"x"}'),
    _in_context("VAR022", _FIELD, "", '"str",\n        "source": {\n          "type": "database"'),
    _in_context("VAR022", '"search_by": "order_number"', '"search_by": "total"', '"total",'),
    _in_context(
        "VAR025",
        f"{_SEARCHED}{_FIELD}\n        }}",
        f'{_SEARCHED}{_FIELD}, "refresh_strategy": "on_demand"\n        }}, "routing": true ',
        "true ",
    ),
    _in_context("VAR026", _SEARCHED, '"search_by": "price_list"', '"price_list", "field"'),
    _in_context("VAR026", "{shop_name}", "{customer_plan}", 'customer_plan}"'),
    _in_context("VAR026", "{shop_name}", "{crm_key}", 'crm_key}"'),
    _in_context("VAR028", _SHOP, f'{_SHOP}, "merge": "append"', '"append"'),
]

_ASKED: Final = '{"type": "function", "function": "tools.moods:is_upset"}'
_TURNS: Final = '"max_turns": 30,'


def _also(trigger: str) -> str:
    return f"{_ASKED}, {trigger}"


_BOUNDARIES: Final = [
    Case(
        "VAR004", _FILE, '"tools.moods:is_vip"', (Swap(_MOODS, "customer_plan: str", "plan: str"),)
    ),
    Case("VAR016", _FILE, '"tools.moods:is_upset"', (Swap(_MOODS, "message: str", "mood: str"),)),
    _in_context(
        "VAR007",
        _ASKED,
        _also('{"type": "lifecycle", "event": "before_chat", "agent": "TechAgent" }'),
        '"TechAgent" ',
    ),
    _in_context("VAR007", _ASKED, _also('{"type": "model_failed", "agent": "Tech"}'), '"Tech"'),
    _in_context("VAR008", _ASKED, _also('{"type": "tool_failed", "tool": "find"}'), '"find"'),
    _in_context("VAR027", _ASKED, _also('{"type": "x:every_nth", "n": "often"}'), '"often"'),
    _in_context("VAR027", _ASKED, _also('{"type": "x:every_nth"}'), '{"type": "x:every_nth"}'),
    Case(
        "HAND024",
        "tools.json",
        '"hand_off_to_user"',
        (
            Rename("find_order", "hand_off_to_user"),
            Swap(
                "agents.json",
                '"agent_name": "TechAgent",',
                '"agent_name": "TechAgent", "handoff_tools": true,',
            ),
        ),
    ),
    Case(
        "VAR023",
        "orchestrator.json",
        '"a b"',
        (
            Swap(
                "orchestrator.json",
                _TURNS,
                f'{_TURNS} "trigger": {{"type": "webhook", "path": "a b"}},',
            ),
        ),
        also=dict.fromkeys(("HAND018", "HAND020"), "the desk asks customers, and none is there"),
    ),
]

CASES: Final = [*_SERVERS, *_SOURCES, *_BOUNDARIES]
