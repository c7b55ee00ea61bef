"""The shared journals: what the server sends of recorded runs, and what is known after each event.

Python and the page fold the same journals to the same facts: `test_shared_journals.py` and
`web/src/run/journals.test.ts`. In the folder tests, this writes `*.jsonl` and `expected.json` anew:

    python -m wire.journals
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

from pydantic_core import from_json, to_json

from replay.folding import read
from support.run_play import linked
from weft.context.audience import Audience
from weft.engine.events import Event, MessageSent, ModelReplied, RequestAnswered
from weft.engine.reduce import fold
from weft.findings import Json
from weft.inspect.run import turn_records
from weft.runtime.workflow import Workflow, unpack
from weft.wire.events import event_bytes, user_event_bytes
from weft.wire.rows import state_data

HERE: Final = Path(__file__).parent
RECORDED: Final = HERE.parent / "replay"

#: The recorded runs that are shared: a conversation with a UI tool and handoffs; questions that
#: are answered, expire and fail; structured replies that are refused; tools that fail, and a stop;
#: parallel agents; the fork of a run; a flow with a fork, a failure and steps that are undone; a
#: board.
SHARED: Final = ("router", "questions", "plans", "stopped", "panel", "fork", "flow_undone", "board")

#: Those that are shared as their end user sees them, too.
FOR_USERS: Final = ("router", "questions", "panel")

#: Other messages of a conversation are not said by anybody: agents begin with them.
_SAYING: Final = (ModelReplied, MessageSent, RequestAnswered)

#: What is known after an event: `status`, `requests`, `spent`, and for each variable, turn and
#: message an entry of its own.
Facts: TypeAlias = dict[str, Json]


class Recorded:
    """A recorded run."""

    def __init__(self, name: str) -> None:
        folder = RECORDED / name
        spec, code = unpack((folder / "package.json").read_bytes())
        self.workflow: Workflow = linked(spec, code)
        self.run: str = from_json((folder / "expected.json").read_bytes())["run"]
        self.events: Sequence[Event] = read((folder / "journal.jsonl").read_bytes())

    def facts(self, seq: int) -> Facts:
        """Return what is known after the first events."""
        events = self.events[:seq]
        state = fold(self.workflow.compiled, self.run, events)
        shown = state_data(state, self.workflow)
        # On a board and in a flow agents say something for a moment: what remains is an artifact,
        # or a value of a variable.
        threads = () if state.board or state.flow else (state.messages, *state.threads.values())
        messages = {message.seq: message for thread in threads for message in thread}
        return {
            "status": shown["status"],
            "outcome": shown["outcome"],
            "requests": sorted(state.requests),
            "spent": list(state.spent),
            **{f"variable {name}": value for name, value in shown["variables"].items()},
            **{
                f"turn {turn.number}": [turn.agent, _turn_state(turn.error, turn.ended)]
                for turn in turn_records(self.workflow, self.run, events)
            },
            **{
                f"said {number}": [said.agent, said.text]
                for number, said in sorted(messages.items())
                if said.text and isinstance(self.events[number - 1].data, _SAYING)
            },
        }


def _turn_state(error: str | None, ended: int | None) -> str:
    return "failed" if error is not None else "working" if ended is None else "done"


def changes(before: Mapping[str, Json], after: Mapping[str, Json]) -> Facts:
    """Return the facts that are different; null for one that does not hold any more."""
    gone = dict.fromkeys(before.keys() - after.keys())
    return gone | {
        name: fact for name, fact in after.items() if name not in before or before[name] != fact
    }


def shared_files() -> dict[str, bytes]:
    """Return the content of all shared files, by name."""
    files: dict[str, bytes] = {}
    expected: list[bytes] = []
    for name in SHARED:
        recorded = Recorded(name)
        events, run, workflow = recorded.events, recorded.run, recorded.workflow
        files[f"{name}.jsonl"] = _lines(event_bytes(event, run, workflow) for event in events)
        if name in FOR_USERS:
            audience = Audience(workflow.spec, "ada")
            seen = (user_event_bytes(event, run, workflow, audience) for event in events)
            files[f"{name}.user.jsonl"] = _lines(line for line in seen if line is not None)
        facts: list[Facts] = [{}, *(recorded.facts(event.seq) for event in events)]
        known = b",\n".join(to_json(changes(*pair)) for pair in pairwise(facts))
        expected.append(b'"%s": [\n%s\n]' % (name.encode(), known))
    files["expected.json"] = b"{%s}\n" % b",\n".join(expected)
    return files


def _lines(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


if __name__ == "__main__":
    for name, content in shared_files().items():
        (HERE / name).write_bytes(content)
