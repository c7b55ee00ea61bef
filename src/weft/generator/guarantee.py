"""The guarantee: what a generated package must stand before anybody is offered it.

Code that a model wrote is read and checked, never executed: simulated runs use the plain version
of every file.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Final

from weft.catalogue import CATALOGUE
from weft.errors import UsageError
from weft.findings import Finding, Json, Place, is_error
from weft.generator.simulation import Simulate, Simulation
from weft.ids import name_error
from weft.packages.archive.staging import staged_folder
from weft.packages.reader import Package, read_package
from weft.packages.review import review
from weft.packages.workspace import PACKAGES, PACKS
from weft.spec.tools import UiTool, is_built_in, is_outside_package
from weft.wire.findings import finding_data

REQUIREMENTS: Final = "requirements.txt"

#: Who makes which file.
_MAKERS: Final = {
    "agents.json": "AgentsAgent",
    "tools.json": "ToolsManagerAgent",
    "context_variables.json": "ContextVariablesAgent",
    "handoffs.json": "HandoffsAgent",
    "structured_outputs.json": "StructuredOutputsAgent",
    "orchestrator.json": "OrchestratorAgent",
    "hooks.json": "HookAgent",
    REQUIREMENTS: "AgentToolsFileGenerator",
}

#: The name a line of requirements begins with; comments and options have none.
_DISTRIBUTION: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True)
class PackageVerdict:
    """What became of one package: what was found, and what its simulated runs did."""

    name: str
    digest: str
    findings: tuple[Finding, ...]
    simulation: Simulation
    #: The files of its UI tools, for whom another agent is responsible.
    ui_files: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether it may be offered."""
        return not any(map(is_error, self.findings))

    def in_words(self) -> str:
        """Say in a line how it was checked and tried out."""
        errors = sum(map(is_error, self.findings))
        runs = self.simulation.runs
        came = "every agent and every way visited"
        if not self.simulation.ok:
            came = "; ".join((*self.simulation.problems, *self.simulation.missed))
        number = "1 simulated run" if len(runs) == 1 else f"{len(runs)} simulated runs"
        return (
            f"{self.name}: {errors} errors, {len(self.findings) - errors} warnings; "
            f"{number} of {sum(it.turns for it in runs)} turns: {came}"
        )

    def maker_of(self, finding: Finding) -> str:
        """Return the agent of the Generator that made the file a finding is about."""
        file = finding.place.file.removeprefix(f"{self.name}/")
        path = PurePosixPath(file)
        if file in _MAKERS:
            return _MAKERS[file]
        if path.parts[0] == "hooks":
            return "HookAgent"
        if path.suffix == ".jsx" or file in self.ui_files:
            return "UIFileGenerator"
        return "AgentToolsFileGenerator" if path.parts[0] == "tools" else "OrchestratorAgent"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether everything that was generated may be offered, and if not, who must do what anew."""

    packages: tuple[PackageVerdict, ...]
    #: What is wrong between the packages, and with their pack.
    together: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all of it may be offered."""
        return all(it.ok for it in self.packages) and not any(map(is_error, self.together))

    @property
    def responsible(self) -> dict[str, tuple[Finding, ...]]:
        """The findings by the agent that made what they are about."""
        found: dict[str, list[Finding]] = {}
        for package in self.packages:
            for finding in package.findings:
                found.setdefault(package.maker_of(finding), []).append(finding)
        for finding in self.together:
            found.setdefault("OrchestratorAgent", []).append(finding)
        return {agent: tuple(theirs) for agent, theirs in found.items()}

    def as_json(self) -> dict[str, Json]:
        """Return it as it is kept in a journal."""
        return {
            "ok": self.ok,
            "packages": [
                {
                    "name": it.name,
                    "digest": it.digest,
                    "ok": it.ok,
                    "findings": [
                        {**finding_data(finding), "agent": it.maker_of(finding)}
                        for finding in it.findings
                    ],
                    "simulation": it.simulation.as_json(),
                }
                for it in self.packages
            ],
            "together": [finding_data(it) for it in self.together],
        }


def verify(
    files: Mapping[str, Mapping[str, str]],
    plain_code: Mapping[str, Mapping[str, bytes]],
    simulate: Simulate,
    pack: str | None = None,
) -> Verdict:
    """Judge packages, by name with their files as they would be written, and the pack of them.

    Each must load, check without errors, and end in simulated runs that come to everything. These
    use `plain_code`: the plain version of every code file, by package.
    """
    written = {
        f"{PACKAGES}/{name}/{path}": text.encode()
        for name, texts in files.items()
        for path, text in texts.items()
    }
    # Names that a model chose are not trusted: nothing is written outside of the folder.
    for path in written:
        if fault := name_error(path):
            raise UsageError(f"{path} is not the name of a file in a package: it {fault}")
    if pack is not None:
        written[f"{PACKS}/pack.json"] = pack.encode()
    with staged_folder(written, "workspace") as workspace:
        inside = workspace / PACKAGES
        found = [_placed(it, workspace) for it in review(workspace).findings]
        packages = {name: read_package(inside / name) for name in files}
        verdicts = tuple(
            _judged(package, found, files[name], plain_code.get(name, {}), simulate)
            for name, package in packages.items()
        )
    told = {id(it) for verdict in verdicts for it in verdict.findings}
    return Verdict(verdicts, tuple(it for it in found if id(it) not in told))


def _placed(finding: Finding, workspace: Path) -> Finding:
    """Name a file by its package, not by the folder where it stood for a moment."""
    file = finding.place.file.removeprefix(f"{workspace}/").removeprefix(f"{PACKAGES}/")
    # What is required beside the packages may be where they are going to be; a start tells.
    severity = "warning" if finding.code == "PACK001" else finding.severity
    return replace(finding, severity=severity, place=replace(finding.place, file=file))


def _judged(
    package: Package,
    found: list[Finding],
    files: Mapping[str, str],
    plain_code: Mapping[str, bytes],
    simulate: Simulate,
) -> PackageVerdict:
    name = package.folder.name
    said = [it for it in found if it.place.file.startswith(f"{name}/")]
    said += _code_elsewhere(package)
    said += _not_installed(name, files.get(REQUIREMENTS, ""))
    simulation = Simulation()
    if not any(map(is_error, said)):
        simulation = simulate(package.spec, plain_code)
        said += _of_simulation(name, simulation)
    ui = (it.file for it in package.spec.tools if isinstance(it, UiTool))
    return PackageVerdict(
        name, package.digest, tuple(said), simulation, frozenset(f"tools/{it}" for it in ui)
    )


def _of_simulation(name: str, simulation: Simulation) -> Iterator[Finding]:
    """Yield what simulated runs did not do."""
    for problem in simulation.problems:
        # What fails is called; what comes to no end is not handed off well.
        file = "tools.json" if " failed" in problem or " linked" in problem else "handoffs.json"
        yield _finding("GEN001", problem, f"{name}/{file}")
    for missed in simulation.missed:
        finding = _finding("GEN002", missed, f"{name}/handoffs.json")
        if simulation.limited and not simulation.problems:  # What was not tried may well work.
            told = f"{missed}: {len(simulation.runs)} of them were not enough to try it"
            finding = replace(finding, severity="warning", message=told)
        yield finding


def _code_elsewhere(package: Package) -> Iterator[Finding]:
    """Yield the tools whose code would be imported although it is none of the package."""
    for tool in package.spec.tools:
        if is_outside_package(tool) and not is_built_in(tool):
            fact = f"the code of {tool.function} is {tool.file}, outside of the package"
            yield _finding("GEN004", fact, f"{package.folder.name}/tools.json")


def _not_installed(name: str, requirements: str) -> Iterator[Finding]:
    """Yield the libraries that a package needs and that are not there; none is imported."""
    for number, line in enumerate(requirements.splitlines(), 1):
        named = _DISTRIBUTION.match(line)
        if named is None:
            continue
        try:
            version(named[1])
        except PackageNotFoundError:
            fact = f"{named[1]} is not installed here"
            yield _finding("GEN003", fact, f"{name}/{REQUIREMENTS}", number)


def _finding(code: str, message: str, file: str, line: int | None = None) -> Finding:
    rule = CATALOGUE[code]
    return Finding(code, rule.severity, message, Place(file, line), hint=(rule.fix,))
