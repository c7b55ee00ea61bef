"""Generations with a weak model: three briefs come to packages, and each part says whose it is."""
# ruff: noqa: INP001, S603 - part of a program, not of a package; it starts only Weft itself

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from weft.generator.bundle import PLAN_FILE, TRACE_FILE, make_bundle, plain_drafts
from weft.spec.plan import ActionPlan

ROOT: Final = Path(__file__).parents[2]
WEFT: Final = Path(sys.executable).with_name("weft")

#: One that names steps, one whose pattern wins by its words, and one that says next to nothing.
BRIEFS: Final = ("06-onboarding", "17-it-escalation", "24-vague")

#: A model as small as this finds no end where a text or a list has none, and says the same again
#: and again: what is not done by then will not be. Penalties are the server's own words.
SETTINGS: Final = {"max_tokens": 240, "extra_body": {"repeat_penalty": 1.15, "repeat_last_n": 256}}

#: Seconds for one generation: three to five minutes are usual, more where others work, too.
MOST_SECONDS: Final = 1200.0

#: How much of a reason is shown.
_LONGEST: Final = 200


def generations(model: str, workspace: Path, say: Callable[[str], None]) -> list[str]:
    """Let a model take part in three generations, tell what came of each; return what is missing.

    The Generator is the shipped one with other settings, which every workspace may have.
    """
    package = workspace / "workflows" / "Generator"
    shutil.copytree(ROOT / "workflows" / "Generator", package)
    settings = package / "orchestrator.json"
    declared = json.loads(settings.read_text("utf-8"))
    settings.write_text(json.dumps({**declared, "model_settings": SETTINGS}), "utf-8")
    missing: list[str] = []
    for brief in BRIEFS:
        say(f"\nGenerator, brief {brief}\n")
        missing += [f"{brief}: {problem}" for problem in _generation(brief, model, workspace, say)]
    return missing


def _generation(
    brief: str, model: str, workspace: Path, say: Callable[[str], None]
) -> Iterator[str]:
    """Generate from one brief with nobody to ask, and check what came of it."""
    file = ROOT / "examples" / "briefs" / f"{brief}.txt"
    command = ["generate", "--from", file, "--approve", "--model", model, "--json"]
    begun = time.monotonic()
    try:
        done = _weft(workspace, *command)
    except subprocess.TimeoutExpired:
        yield f"an end within {MOST_SECONDS:.0f} s"
        return
    seconds = time.monotonic() - begun
    if done.returncode != 0:
        say(f"{done.stdout}{done.stderr}\n")
        yield "a generation that ends well"
        return
    made = json.loads(done.stdout)
    run = made["run"]
    say(
        f"  {run['calls']} model calls, {run['input_tokens']} tokens in, "
        f"{run['output_tokens']} out, {seconds:.0f} s, {run['outcome']}\n"
    )
    for line in _whose(made):
        say(f"  {line}\n")
    if not made["packages"]:
        yield "a package"
    for package in made["packages"]:
        checked = _weft(workspace, "check", package["folder"])
        say(f"  package {package['name']}: {checked.stdout.strip()}\n")
        say(f"  files with text of the model: {_touched(workspace, package)}\n")
        if checked.returncode != 0 or "No findings" not in checked.stdout:
            yield f"{package['name']} checks clean"
    if {part["agent"] for part in made["parts"] if not _is_told(part)}:
        yield "whose every part is"


def _weft(workspace: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WEFT, *command],
        cwd=workspace,
        capture_output=True,
        encoding="utf-8",
        timeout=MOST_SECONDS,
        check=False,
    )


def _whose(made: dict[str, Any]) -> Iterator[str]:
    """Say of every agent whose part stands, and why."""
    for part in made["parts"]:
        dropped = [each for each in made["replaced"] if each["agent"] == part["agent"]]
        if part["answerer"] != "model":
            why = part["instead_of"].partition(", which ")[2]
            yield f"{part['agent']}: the designer's; the model {_short(why)}"
        elif not dropped:
            yield f"{part['agent']}: the model's"
        else:
            first = f"{dropped[0]['what']}: {dropped[0]['why']}"
            count = f"{len(dropped)} pieces dropped"
            yield f"{part['agent']}: the model's, but {count}; {_short(first)}"
    if made["repairs"]:
        yield f"the package was sent back {made['repairs']} times"


def _is_told(part: dict[str, Any]) -> bool:
    """Tell whether a part says whose it is: the model's, or the designer's with a reason."""
    return part["answerer"] == "model" or bool(part["instead_of"])


def _touched(workspace: Path, package: dict[str, Any]) -> str:
    """Name the files of a package that have something a model added to what the plan says."""
    folder = workspace / package["folder"]
    plan = ActionPlan.model_validate_json((folder / PLAN_FILE).read_text("utf-8"))
    plain = make_bundle(plan, plain_drafts(plan)).packages[package["name"]]
    written = {path: (folder / path).read_text("utf-8") for path in package["added"]}
    differ = [name for name in written if name != TRACE_FILE and written[name] != plain.get(name)]
    return ", ".join(differ) or "none"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
