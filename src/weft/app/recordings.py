"""Recorded runs that come with Weft: anybody can play them, without a key and without a model."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.engine.events import KIND_NAMES, Event, RequestAnswered, RequestOpened, RunStarted
from weft.engine.events.codec import decode, encode
from weft.errors import NotFoundError
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder
from weft.ports.scope import Scope
from weft.runtime.workflow import Workflow, pack

#: What begins a played recording; other runs are begun by a user.
ACTOR: Final = "recording"

#: The run and the user in the files.
RUN: Final = "RUN"
USER: Final = "me"

_FOLDER: Final = Path(__file__).with_name("recordings")


class Recording(NamedTuple):
    """A recorded run; its workflow is a shipped package."""

    name: str
    workflow: str
    title: str


def recordings() -> list[Recording]:
    """Return the recordings by name."""
    return [_head(path) for path in sorted(_FOLDER.glob("*.jsonl"))]


def find_recording(name: str) -> Recording:
    """Return a recording by its name; raises NotFoundError."""
    for recording in recordings():
        if recording.name == name:
            return recording
    raise NotFoundError(f"there is no recording {name}", hint="GET /api/recordings lists them")


def recorded_package(recording: Recording) -> bytes:
    """Return the package of a recording, packed."""
    package = read_package(shipped_folder() / recording.workflow)
    return pack(package.spec, package.code)


def recorded_events(
    recording: Recording, workflow: Workflow, *, run: str, scope: Scope, now: int
) -> list[Event]:
    """Return the events of a recording as a run of somebody that has ended now."""
    found = list(_read(_FOLDER / f"{recording.name}.jsonl"))
    delay, user = now - found[-1].at, scope.user or ""
    events: list[Event] = []
    for event in found:
        data, actor = event.data, event.actor.replace(f"user:{USER}", f"user:{user}")
        match data:
            case RunStarted():
                data = replace(data, app=scope.app, user=user, digest=workflow.digest)
                actor = ACTOR
            case RequestOpened():
                data = replace(data, id=_renamed(data.id, run))
            case RequestAnswered():
                data = replace(data, id=_renamed(data.id, run), user=user)
            case _:
                pass
        events.append(event._replace(at=event.at + delay, actor=actor, data=data))
    return events


def written(recording: Recording, events: list[Event]) -> str:
    """Return the file of a recording."""
    lines = [json.dumps(recording._asdict(), ensure_ascii=False)]
    for event in events:
        kind, data = KIND_NAMES[type(event.data)], json.loads(encode(event.data))
        entry = {**event._asdict(), "kind": kind, "data": data}
        lines.append(json.dumps(entry, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


def _head(path: Path) -> Recording:
    with path.open(encoding="utf-8") as file:
        return Recording(**json.loads(file.readline()))


def _read(path: Path) -> Iterator[Event]:
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        found: dict[str, Any] = json.loads(line)
        data = decode(found.pop("kind"), json.dumps(found.pop("data")))
        yield Event(**found, data=data)


def _renamed(request: str, run: str) -> str:
    return request.replace(f"{RUN}:", f"{run}:")
