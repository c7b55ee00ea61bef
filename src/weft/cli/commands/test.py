"""weft test and weft runs save-test: run the scenarios of packages, and make one of a run."""

import asyncio
from collections.abc import Mapping
from time import perf_counter
from typing import Final

from weft.app.installation import linking_of
from weft.app.recorded_scenarios import save_scenario
from weft.app.scenarios import RunFacts, ScenarioResult, facts_of, run_scenario
from weft.cli.failure import Exit, conflict, not_found, usage
from weft.cli.hosting import JournalFile, RunName, ServerUrl, find_run, hosted, locate_runs, short
from weft.cli.options import Output, command
from weft.cli.pages.findings import full
from weft.cli.paths import PackageName, locate_package, locate_packages
from weft.cli.results import Result
from weft.cli.streams import Streams, counted
from weft.environment import read_environment
from weft.findings import Json
from weft.ids import segment_error, suggestion
from weft.packages.archive.staging import replace_files
from weft.packages.layout import TESTS
from weft.packages.reader import Package, read_package
from weft.packages.review import refuse_errors
from weft.packages.scenarios import ScenarioFile, read_scenario, read_scenarios
from weft.testing.network import no_network

#: The width of the progress bar, and how many scenarios run at once.
_BAR: Final = 30
_AT_ONCE: Final = 8


@command
def run_tests(*names: PackageName, scenario: str | None = None, streams: Output) -> Result:
    """Run the scenarios of packages: the files in their folders `tests`.

    Models and people say what the files say, and nothing leaves this machine. The code of the
    packages is executed.

    Options:
      NAMES            Packages by name, or folders; default: the whole workspace.
      --scenario NAME  Only the scenario of this name.

    Examples:
      weft test
      weft test HelloWorld --scenario says_goodbye
    """
    begun, linking = perf_counter(), linking_of(read_environment())
    packages = map(read_package, locate_packages(names, streams.settings.workspace))
    found = [(package, file) for package in packages for file in read_scenarios(package)]
    wanted = [(package, file) for package, file in found if scenario in (None, file.name)]
    if scenario is not None and not wanted:
        hint = suggestion(scenario, [file.name for _, file in found])
        raise not_found(f'there is no scenario "{scenario}"', hint)
    for package in {package.folder: package for package, _ in wanted}.values():
        refuse_errors(package, kinds=linking.kinds, suppressed=linking.suppressed)
    with no_network():
        results = asyncio.run(_run(wanted, streams))
    failed = [result for result in results if result.findings]
    shown = [_shown(result, streams) for result in failed]
    passed = f"{counted(len(results) - len(failed), 'scenario')} passed"
    counts = f"{passed}, {len(failed)} failed" if failed else passed
    if results:
        shown.append(f"{counts} ({perf_counter() - begun:.2f} s).")
    else:
        shown.append("no scenarios")
    return Result(
        {"results": [result.as_json() for result in results], "failed": len(failed)},
        "\n\n".join(shown),
        () if results else ("write one in the folder tests of a package: weft schema scenario",),
        outcome=Exit.FAILED if failed else Exit.DONE,
    )


async def _run(
    scenarios: list[tuple[Package, ScenarioFile]], streams: Streams
) -> list[ScenarioResult]:
    """Run scenarios, several at once, with a progress bar."""
    places, linking, done = asyncio.Semaphore(_AT_ONCE), linking_of(read_environment()), 0

    async def run(package: Package, file: ScenarioFile) -> ScenarioResult:
        nonlocal done
        async with places:
            result = await run_scenario(package, file, linking)
        done += 1
        bar = "#" * (_BAR * done // len(scenarios))
        streams.status(f"[{bar:-<{_BAR}}] {done} of {counted(len(scenarios), 'scenario')}")
        return result

    results = await asyncio.gather(*(run(package, file) for package, file in scenarios))
    streams.status("")
    return results


def _shown(result: ScenarioResult, streams: Streams) -> str:
    head = streams.paint(f"failed: {result.package} {result.name}", "bold red")
    return f"{head}\n\n{full(result.findings.values(), streams.paint, streams.columns)}"


@command
def save_test(
    run: RunName,
    /,
    *,
    name: str | None = None,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """Save a run as a scenario of its package, and run it once.

    Options:
      --name NAME  Name of the scenario; default: the end of the run's id.

    Examples:
      weft runs save-test last --name refund
    """
    location = locate_runs(streams, journal, server, must_exist=True)

    async def read() -> RunFacts:
        async with hosted(location, reading=True) as host:
            return await facts_of(host, await find_run(host, run))

    facts = asyncio.run(read())
    package = read_package(locate_package(facts.workflow.name, streams.settings.workspace))
    title = name or f"run_{short(facts.row.run)}"
    path = f"{TESTS}/{title}.yaml"
    if fault := segment_error(title):
        raise usage(f'invalid value "{title}" for --name: it {fault}', "write a word")
    if (package.folder / path).exists():
        raise conflict(f"{package.folder / path} already exists", "choose another name: --name")

    async def play(text: str) -> Mapping[str, Json]:
        file = read_scenario(package, path, text.encode())
        return (await run_scenario(package, file, linking_of(read_environment()))).as_json()

    with no_network():
        text, volatile = asyncio.run(save_scenario(facts, play))
    replace_files(package.folder, {path: text.encode()})
    differing = f"not compared, since they differ each time: {', '.join(volatile)}"
    run_it = f"run it: weft test {package.name} --scenario {title}"
    return Result(
        {"file": package.folder / path, "volatile": volatile},
        f"created {package.folder / path}",
        [*([differing] if volatile else []), run_it],
    )
