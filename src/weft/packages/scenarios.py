"""The scenarios of a package: the files in its folder `tests`, read and written."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from weft.catalogue import CATALOGUE
from weft.engine.board.rules import types_of
from weft.engine.flow.plan import nodes_of
from weft.findings import Finding, Path, is_error
from weft.ids import CALL_APPROVAL, suggestion
from weft.packages.layout import SCENARIO
from weft.packages.reader import Package, open_document, read_part
from weft.packages.text import documents
from weft.packages.text.documents import Document, dump
from weft.packages.writer import schema_pointer
from weft.spec.scenario import ANY_TURNS, Scenario, ScenarioCase
from weft.spec.workflow import WorkflowSpec

#: Before the step that a turn of a flow undoes.
UNDO: Final = "undo:"


@dataclass(frozen=True)
class ScenarioFile:
    """One file in `tests`; the scenario is None if it was refused."""

    path: str
    document: Document
    scenario: Scenario | None
    findings: tuple[Finding, ...]

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).stem

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(filter(is_error, self.findings))


def read_scenarios(package: Package) -> list[ScenarioFile]:
    """Read the scenarios of a package, in the order of their names."""
    return [read_scenario(package, path, raw) for path, raw in sorted(package.tests.items())]


def read_scenario(package: Package, path: str, raw: bytes) -> ScenarioFile:
    """Read one scenario of a package; what is wrong with it is in its findings."""
    document = documents.read(str(package.folder / path), raw)
    scenario, errors = None, list[Finding]()
    if document.ok:
        scenario, errors = read_part(open_document(path, document, SCENARIO), Scenario)
    if scenario is not None and not package.broken:
        errors += _unknown_names(document, package.spec, scenario)
    # No fix reaches the files in `tests`.
    findings = (replace(finding, fix=None) for finding in (*document.findings, *errors))
    return ScenarioFile(path, document, scenario, tuple(findings))


def scenario_text(scenario: Scenario, comment: str) -> str:
    """Return the text of a file with a scenario, in YAML."""
    data = scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    pointer = f"# yaml-language-server: $schema=../{schema_pointer(SCENARIO)}\n"
    return f"{pointer}# {comment}\n{dump(data, 'yaml')}"


def cases_of(scenario: Scenario) -> Iterator[tuple[Path, ScenarioCase]]:
    """Yield the cases of a scenario, one after the other, each with its path."""
    case: ScenarioCase | None = scenario
    path: Path = ()
    while case is not None:
        yield path, case
        case, path = case.then, (*path, "then")


def _unknown_names(document: Document, spec: WorkflowSpec, scenario: Scenario) -> Iterator[Finding]:
    """Yield a finding for each name in a scenario that the package does not have."""
    agents: Collection[str] = [agent.agent_name for agent in spec.agents]
    nodes = [node.name for node in nodes_of(spec.flow)] if spec.flow else []
    tools = [tool.function for tool in spec.tools]
    results = types_of(spec.board) if spec.board else spec.variables
    turns = [*nodes, *(f"{UNDO}{node}" for node in nodes)] if spec.flow else agents
    named: list[tuple[str, Path, Collection[str], Collection[str]]] = []
    if not spec.mcp_servers:  # Their tools are known only when a run asks for them.
        named.append(("tool", ("tools",), scenario.tools, tools))
    for path, case in cases_of(scenario):
        replies, at = case.replies if isinstance(case.replies, dict) else (), (*path, "expect")
        asked = [name for name in case.expect.requests or () if not name.startswith(CALL_APPROVAL)]
        named += [
            ("variable", (*path, "values"), case.values, spec.variables),
            ("agent", (*path, "replies"), replies, agents),
            ("turn", (*at, "route"), case.expect.route or (), {*turns, ANY_TURNS}),
            ("request", (*at, "requests"), asked, [*tools, *nodes]),
        ]
        if spec.flow is None:  # The fields of a state are in code.
            named.append(("result", (*at, "variables"), case.expect.variables, results))
    severity = CATALOGUE["NAME001"].severity
    for kind, path, names, known in named:
        for number, name in enumerate(names):
            if name not in known and name.partition("/")[0].partition("#")[0] not in known:
                is_key = not isinstance(names, tuple)
                place = document.place((*path, name if is_key else number), key=is_key)
                message = f'the scenario names the unknown {kind} "{name}"'
                yield Finding("NAME001", severity, message, place, hint=(suggestion(name, known),))
