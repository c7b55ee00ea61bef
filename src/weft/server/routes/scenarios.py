"""Scenarios: list and run those of a package, and make one of a run."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import StringConstraints
from pydantic_core import from_json
from typing_extensions import TypedDict

from weft.app.recorded_scenarios import save_scenario
from weft.app.scenarios import SECONDS, facts_of
from weft.errors import UsageError
from weft.packages.archive.staging import staged_folder
from weft.packages.folder import read_files
from weft.packages.layout import TESTS
from weft.packages.reader import read_package
from weft.packages.scenarios import read_scenarios
from weft.server.answers import FindingAnswer, page_of
from weft.server.context import ServerContext
from weft.server.identity import DEVELOPER
from weft.server.parameters import Body, RunPath
from weft.server.routes.workflows import FoundPlace, require_own
from weft.server.routing import Caller, Context, Routes

routes: Final = Routes("scenarios")

#: What a process for scenarios keeps of the environment: it has no keys.
_KEPT: Final = ("PATH", "HOME", "LANG", "PYTHONPATH", "SYSTEMROOT", "TMPDIR", "ENVIRONMENT")

#: The seconds that all scenarios of a package may take.
_PATIENCE: Final = 2 * SECONDS


class ScenarioBody(Body):
    """The name of a scenario: of the only one that is run, or of a new one."""

    name: Annotated[str, StringConstraints(pattern=r"^[\w-]{1,100}$")] | None = None


class ScenarioAnswer(TypedDict):
    """A scenario of a package."""

    name: str
    path: str
    description: str


class ScenarioResultAnswer(TypedDict):
    """How a scenario went; findings are what was otherwise than it says."""

    package: str
    name: str
    passed: bool
    findings: list[FindingAnswer]


class SavedAnswer(TypedDict):
    """The file of a scenario, and the variables that it does not compare."""

    path: str
    volatile: list[str]


@routes.add("GET", "/api/workflows/{name}/tests", roles=DEVELOPER, answer=page_of(ScenarioAnswer))
async def list_scenarios(place: FoundPlace) -> object:
    """List the scenarios of a package."""
    found = await asyncio.to_thread(lambda: read_scenarios(read_package(place.folder)))
    described = [(file, file.scenario.description if file.scenario else "") for file in found]
    return [{"name": file.name, "path": file.path, "description": text} for file, text in described]


@routes.add(
    "POST", "/api/workflows/{name}/tests", roles=DEVELOPER, answer=page_of(ScenarioResultAnswer)
)
async def run_scenarios(
    place: FoundPlace, context: Context, body: ScenarioBody | None = None
) -> object:
    """Run the scenarios of a package, or one of them, in a process of its own."""
    return await _run(context, place.folder, (body or ScenarioBody()).name)


@routes.add("POST", "/api/runs/{run}/save-test", roles=DEVELOPER, answer=SavedAnswer)
async def save_run(
    run: RunPath, caller: Caller, context: Context, body: ScenarioBody | None = None
) -> object:
    """Save a run as a scenario of its package, after it was played and has passed."""
    facts = await facts_of(context.host, await context.host.run(run, scope=caller.scope))
    place = context.packages.place(caller.app, facts.workflow.name)
    await require_own(place, caller, context)
    name = (body or ScenarioBody()).name or f"run_{run[-8:]}"
    path = f"{TESTS}/{name}.yaml"

    async def play(text: str) -> dict[str, Any]:
        files = {**read_files(place.folder).files, path: text.encode()}
        with staged_folder(files, place.name) as folder:
            return (await _run(context, folder, name))[0]

    text, volatile = await save_scenario(facts, play)
    await context.packages.write_file(
        place, path, text, None, caller.user, dry_run=False, force=False
    )
    return {"path": path, "volatile": volatile}


async def _run(context: ServerContext, folder: Path, name: str | None) -> list[dict[str, Any]]:
    """Run the scenarios of a package: `weft test` in a process that can be ended."""
    words = ["-m", "weft", "test", folder.name, "--json", *(["--scenario", name] if name else [])]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        cwd=folder.parent,
        env={key: context.environment[key] for key in _KEPT if key in context.environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), _PATIENCE)
    except TimeoutError:
        raise UsageError(f"the scenarios did not end within {_PATIENCE:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
    found: dict[str, Any] = from_json(out)
    if "error" in found:
        problem = found["error"]
        raise UsageError(problem["message"], hint="; ".join(problem["hint"]) or None)
    return found["results"]
