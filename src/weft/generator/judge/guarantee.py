"""The checks of generated packages as a whole: reading, the checker, and simulated runs.

Code that a model wrote is read and never executed: simulated runs use stand-ins for it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from weft.catalogue import CATALOGUE
from weft.errors import UsageError
from weft.findings import Finding, Json, Place, is_error
from weft.generator.judge.simulation import Simulate, Simulation
from weft.ids import name_error
from weft.packages.archive.staging import staged_folder
from weft.packages.reader import Package, read_package
from weft.packages.review import review
from weft.packages.workspace import PACKAGES, PACKS
from weft.spec.tools import is_built_in, is_outside_package
from weft.wire.findings import finding_data

REQUIREMENTS: Final = "requirements.txt"

#: The name at the beginning of a line of requirements; comments and options have none.
_DISTRIBUTION: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True)
class PackageVerdict:
    """The findings of one package, and its simulated runs."""

    name: str
    digest: str
    findings: tuple[Finding, ...]
    simulation: Simulation

    @property
    def ok(self) -> bool:
        """Whether it has no errors."""
        return not any(map(is_error, self.findings))

    def in_words(self) -> str:
        """Return in a line how it was checked and simulated."""
        errors = sum(map(is_error, self.findings))
        runs = self.simulation.runs
        result = "every agent and every way visited"
        if not self.simulation.ok:
            result = "; ".join((*self.simulation.problems, *self.simulation.missed))
        number = "1 simulated run" if len(runs) == 1 else f"{len(runs)} simulated runs"
        return (
            f"{self.name}: {errors} errors, {len(self.findings) - errors} warnings; "
            f"{number} of {sum(run.turns for run in runs)} turns: {result}"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The findings of everything that was generated."""

    packages: tuple[PackageVerdict, ...]
    #: The findings between the packages, and of their pack.
    together: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing has errors."""
        return all(package.ok for package in self.packages) and not any(
            map(is_error, self.together)
        )

    @property
    def errors(self) -> tuple[Finding, ...]:
        """All errors."""
        found = (finding for package in self.packages for finding in package.findings)
        return tuple(filter(is_error, (*found, *self.together)))

    def as_json(self) -> dict[str, Json]:
        """Return it as it is stored in a journal."""
        return {
            "ok": self.ok,
            "packages": [
                {
                    "name": package.name,
                    "digest": package.digest,
                    "ok": package.ok,
                    "findings": [finding_data(finding) for finding in package.findings],
                    "simulation": package.simulation.as_json(),
                }
                for package in self.packages
            ],
            "together": [finding_data(finding) for finding in self.together],
        }


def verify(
    files: Mapping[str, Mapping[str, str]], simulate: Simulate, pack: str | None = None
) -> Verdict:
    """Check packages, by name with their files as they would be written, and the pack of them.

    Each must load, have no errors, and end in simulated runs that reach everything.
    """
    written = {
        f"{PACKAGES}/{name}/{path}": text.encode()
        for name, texts in files.items()
        for path, text in texts.items()
    }
    # Names that a model chose are not trusted: nothing is written outside the folder.
    for path in written:
        if fault := name_error(path):
            raise UsageError(f"{path} is not the name of a file in a package: it {fault}")
    if pack is not None:
        written[f"{PACKS}/pack.json"] = pack.encode()
    with staged_folder(written, "workspace") as workspace:
        inside = workspace / PACKAGES
        found = [_placed(finding, workspace) for finding in review(workspace).findings]
        packages = {name: read_package(inside / name) for name in files}
        verdicts = tuple(
            _judged(package, found, files[name], simulate) for name, package in packages.items()
        )
    told = {id(finding) for verdict in verdicts for finding in verdict.findings}
    return Verdict(verdicts, tuple(finding for finding in found if id(finding) not in told))


def _placed(finding: Finding, workspace: Path) -> Finding:
    """Name a file by its package, not by the temporary folder."""
    file = finding.place.file.removeprefix(f"{workspace}/").removeprefix(f"{PACKAGES}/")
    # A required workflow may exist in the workspace of the package; a start checks that.
    severity = "warning" if finding.code == "PACK001" else finding.severity
    return replace(finding, severity=severity, place=replace(finding.place, file=file))


def _judged(
    package: Package, found: list[Finding], files: Mapping[str, str], simulate: Simulate
) -> PackageVerdict:
    name = package.folder.name
    told = [finding for finding in found if finding.place.file.startswith(f"{name}/")]
    told += _code_elsewhere(package)
    told += _not_installed(name, files.get(REQUIREMENTS, ""))
    simulation = Simulation()
    if not any(map(is_error, told)):
        simulation = simulate(package.spec, package.code)
        told += _of_simulation(package, simulation)
    return PackageVerdict(name, package.digest, tuple(told), simulation)


def _of_simulation(package: Package, simulation: Simulation) -> Iterator[Finding]:
    """Yield what simulated runs did not reach."""
    file = f"{package.folder.name}/handoffs.json"
    for problem in simulation.problems:
        yield _finding("GEN001", problem, file)
    for missed in simulation.missed:
        finding = _finding("GEN002", missed, file)
        if simulation.limited and not simulation.problems:  # More runs might reach it.
            message = f"{missed}: {len(simulation.runs)} of them were not enough to try it"
            finding = replace(finding, severity="warning", message=message)
        yield finding


def _code_elsewhere(package: Package) -> Iterator[Finding]:
    """Yield the tools whose code would be imported from outside the package."""
    for tool in package.spec.tools:
        if is_outside_package(tool) and not is_built_in(tool):
            fact = f"the code of {tool.function} is {tool.file}, outside of the package"
            yield _finding("GEN004", fact, f"{package.folder.name}/tools.json")


def _not_installed(name: str, requirements: str) -> Iterator[Finding]:
    """Yield the libraries that a package needs and that are not installed; none is imported."""
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
