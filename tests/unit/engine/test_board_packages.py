"""A board that is kept with its runs is read again as it was, whatever it declares."""

from support.run_play import linked
from weft.runtime.workflow import unpack
from weft.spec.workflow import WorkflowSpec

CODE = {
    "tools/work.py": b"""
class Work:
    def __init__(self, size: int = 1):
        self.size = size

    async def __call__(self, *what):
        return None

    async def evaluate(self, ctx, inputs):
        return None

    def pre_consume(self, ctx, inputs):
        return None


def judge(payload):
    return True
"""
}

FILTERS = {
    "types": ["Idea"],
    "tags": {"include": ["a"], "exclude": ["b"], "all_of": ["c"]},
    "producers": ["Ann"],
    "since": "2026-01-01T00:00:00Z",
    "until": "2026-02-01T00:00:00+01:00",
    "correlation_id": "c1",
    "text": "tea",
    "limit": 3,
    "order": "created_at",
}
WORK = {"component": "tools.work:Work", "options": {"size": 2}, "hooks": ["pre_consume"]}
TREE = {
    "kind": "redacting",
    "drop": ["secret"],
    "transform": {"name": "tools.work:judge"},
    "provider": {
        "kind": "composite",
        "parallel": True,
        "limit": 5,
        "providers": [
            {"kind": "correlated", "limit": 2},
            {"kind": "filtered", "filters": FILTERS, "limit": 4, "include_state_keys": ["k"]},
            {"kind": "recent"},
            {"kind": "window", "seconds": 1.5},
            {"kind": "state"},
            {"kind": "empty"},
            {"kind": "summary", "templates": {"Idea": "{text}"}, "provider": {"kind": "recent"}},
            {"kind": "custom", "provider": "tools.work:Work", "options": {"size": 3}},
        ],
    },
}
AFTER = {"kind": "after", "seconds": 2, "then": {"kind": "after", "seconds": 0.5}}
SPEC = {
    "orchestrator": {"workflow_name": "Board"},
    "agents": [{"agent_name": "Ann"}],
    "board": {
        "artifacts": [{"name": "Idea", "schema": {"type": "object"}}],
        "components": [{**WORK, "priority": 2}],
        "max_concurrency": 3,
        "max_wakes_per_input": 7,
        "idle_seconds": 9.5,
        "agents": [
            {
                "agent": "Ann",
                "labels": ["red"],
                "consumes": [
                    {
                        "types": ["Idea", "Idea"],
                        "where": "tools.work:judge",
                        "tags": ["a"],
                        "from_agents": ["Ann"],
                        "mode": "events",
                        "priority": -2,
                        "join": {"by": {"Idea": "text"}, "within_seconds": 2, "within_count": 3},
                        "batch": {"size": 2, "timeout_seconds": 3},
                        "activation": "Idea > 2",
                        "context": TREE,
                        "scope": "partition",
                    }
                ],
                "publishes": [
                    {
                        "type": "Idea",
                        "visibility": AFTER,
                        "tags": ["a"],
                        "fan_out": 2,
                        "where": "x",
                    },
                ],
                "engines": [
                    {"kind": "function", "function": "tools.work:Work", "context": TREE},
                    {"kind": "model", "model": "m", "instructions": "do", "context": TREE},
                ],
                "context": TREE,
                "fallback": TREE,
                "components": [WORK],
                "schedule": {"at": "2026-01-01T00:00:00Z", "delay_seconds": 1, "max_repeats": 2},
                "best_of": {"n": 2, "score": "tools.work:judge"},
                "max_concurrency": 4,
                "prevent_self_trigger": False,
            }
        ],
    },
}


def test_a_board_is_read_again_from_what_its_runs_keep():
    spec = WorkflowSpec.model_validate(SPEC)
    again, code = unpack(linked(spec, CODE).package)
    assert again == spec
    assert code == CODE
