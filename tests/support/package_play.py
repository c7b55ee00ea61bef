"""Packages as zip files, made from the files that a test names."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from weft.packages.archive.exporting import make_manifest, pack_files
from weft.packages.reader import read_package

GREETER = {
    "orchestrator.json": json.dumps(
        {"workflow_name": "Greeter", "initial_agent": "Host", "description": "Greets people."}
    ),
    "agents.json": json.dumps(
        {
            "agents": [
                {
                    "agent_name": "Host",
                    "human_interaction": "context",
                    "prompt_sections": [
                        {"id": "role", "heading": "[ROLE]", "content": "You greet people."}
                    ],
                }
            ]
        },
        indent=2,
    ),
    "handoffs.json": json.dumps(
        {"handoff_rules": [{"source_agent": "Host", "target_agent": "user"}]}
    ),
    "notes.txt": "first\n",
}

#: An agent that does not exist: an error.
BROKEN = {**GREETER, "handoffs.json": GREETER["handoffs.json"].replace("Host", "Nobody")}


def greeter(**changes: str) -> dict[str, str]:
    """Return the files of a small package; `prompt` and `notes` replace its texts."""
    files = dict(GREETER)
    if "prompt" in changes:
        files["agents.json"] = files["agents.json"].replace("You greet people.", changes["prompt"])
    if "notes" in changes:
        files["notes.txt"] = changes["notes"]
    return files


def zipped(files: Mapping[str, str]) -> bytes:
    """Return a zip file as `weft export` writes one, whatever the checker says of it."""
    content = {name: text.encode() for name, text in files.items()}
    name = json.loads(files["orchestrator.json"])["workflow_name"]
    with TemporaryDirectory() as apart:
        folder = Path(apart) / name
        write(folder, files)
        manifest = make_manifest(name, read_package(folder).digest, content)
    return pack_files(manifest, content)


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files to a folder."""
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
