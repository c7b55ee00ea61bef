"""Every code of the catalogue, raised end to end by the smallest mistake, and by nothing else."""

import ast
import io
import re
from collections import Counter
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

import pytest

import weft.packages
from behaviour import (
    cases_board,
    cases_code,
    cases_consequences,
    cases_context,
    cases_files,
    cases_flow,
    cases_names,
    cases_outside,
    cases_routing,
    cases_workspace,
)
from behaviour.cases_base import NAME, PACKAGE, WORKSPACE
from behaviour.cases_board_base import BOARD
from behaviour.cases_flow_base import FLOW
from behaviour.cases_mistake import END, Case, write_files
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.catalogue import CATALOGUE, FAMILIES
from weft.check.run import RULES
from weft.check.workspace import WORKSPACE_RULES
from weft.engine.variables.suppression import WITHOUT_SCHEMA
from weft.errors import LinkError, PackageError
from weft.findings import Finding, Place
from weft.packages.archive.exporting import export_package
from weft.packages.archive.importing import import_package
from weft.packages.edit.fixes import apply_fixes
from weft.packages.reader import read_package
from weft.packages.review import Review, review
from weft.runtime.workflow import link
from weft.spec.workflow import WorkflowSpec

CASES = [
    *cases_files.CASES,
    *cases_names.CASES,
    *cases_code.CASES,
    *cases_routing.CASES,
    *cases_context.CASES,
    *cases_outside.CASES,
    *cases_workspace.CASES,
    *cases_board.CASES,
    *cases_flow.CASES,
    *cases_consequences.CASES,
]
CODE = re.compile(rf"({'|'.join(FAMILIES)})\d{{3}}")
ARCHIVE = "SCHEMA015"
#: A fix is worked out on the text as it was read, so several take several rounds.
MOST_ROUNDS = 3
#: What only a program that builds a flow can do wrong: tests/unit/dsl/test_flow_refusals.py.
BUILT = {"FLOW004", "FLOW011", "FLOW033", "FLOW034"}
#: What only the Generator reports: tests/unit/generator/test_guarantee.py.
GENERATED = {"GEN001", "GEN002", "GEN003", "GEN004"}
#: What the package, which has one of everything, has in any case.
NOT_PERFORMED = "LINK003"


def parameters(cases: list[Case]):
    """Number the cases of each code."""
    met = Counter[str]()
    found = []
    for case in cases:
        met[case.code] += 1
        found.append(pytest.param(case, id=f"{case.code}-{met[case.code]}"))
    return found


def written(case: Case, folder: Path) -> Path:
    """Write the files of a case and return the folder they stand in."""
    root = folder / NAME
    if case.code == ARCHIVE:
        root.mkdir()
        (root / case.file).write_bytes(spoilt_archive(case, folder))
    else:
        write_files(root, case.files())
    return root


def spoilt_archive(case: Case, folder: Path) -> bytes:
    """Pack the sound package, then put other files in under the old manifest."""
    source, target = folder / "source" / NAME, folder / "sound.zip"
    write_files(source, {name: text.encode() for name, text in PACKAGE.items()})
    export_package(source, target)
    raw = io.BytesIO()
    with ZipFile(target) as sound, ZipFile(raw, "w") as spoilt:
        spoilt.writestr("manifest.json", sound.read("manifest.json"))
        for name, content in case.files().items():
            spoilt.writestr(name, content)
    return raw.getvalue()


def performed(found: Review) -> tuple[Finding, ...]:
    """Leave out that the package declares what is not performed."""
    return tuple(it for it in found.findings if it.code != NOT_PERFORMED)


def findings(case: Case, root: Path) -> tuple[Finding, ...]:
    """Read and check what was written, by the door the case is for."""
    if case.code != ARCHIVE:
        lean = WITHOUT_SCHEMA if case in cases_routing.LEAN_CASES else frozenset()
        found = review(
            root,
            kinds=cases_outside.KINDS,
            suppressed=lean,
            model_providers=frozenset({"openai", "sample"}),
        )
        added = (it for it in found.findings if it.place.file == str(root / case.file))
        return tuple(added) if case.code == NOT_PERFORMED else performed(found)
    with pytest.raises(PackageError) as raised:
        import_package(root / case.file, root / "workspace")
    assert not (root / "workspace").exists()
    return raised.value.findings


def line_and_column(text: str, mark: str) -> tuple[int, int]:
    """Return where a text that stands once in another begins, counted from 1."""
    if mark == END:
        start = len(text)
    else:
        assert text.count(mark) == 1, f"{mark!r} stands {text.count(mark)} times in the file"
        start = text.index(mark)
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def codes(found: tuple[Finding, ...]) -> set[str]:
    return {finding.code for finding in found}


@pytest.mark.parametrize(
    ("files", "name"), [(PACKAGE, NAME), (BOARD, NAME), (FLOW, NAME), (WORKSPACE, "Workspace")]
)
@pytest.mark.parametrize("profile", ["development", "production"])
def test_nothing_is_found_before_the_mistake(files, name, profile, tmp_path):
    write_files(tmp_path / name, {file: text.encode() for file, text in files.items()})
    assert performed(review(tmp_path / name, profile=profile)) == ()


@pytest.mark.parametrize("case", parameters(CASES))
def test_one_mistake_is_one_finding_at_its_place(case, tmp_path):
    root = written(case, tmp_path)
    found = findings(case, root)
    assert codes(found) == {case.code, *case.also}
    (finding,) = [it for it in found if it.code == case.code]
    assert finding.place.file == str(root / case.file)
    assert (finding.place.line, finding.place.column) == place_of(case, root)
    assert 1 <= finding.place.length <= room_at(finding.place)
    assert (finding.fix is not None) == case.mends
    for it in found:
        assert it.severity == (case.severity or CATALOGUE[it.code].severity)
        assert_readable(it)


def place_of(case: Case, root: Path) -> tuple[int, int] | tuple[None, None]:
    if case.mark is None:
        whole_text = (root / case.file).exists() and case.code != ARCHIVE
        return (1, 1) if whole_text else (None, None)
    text = (root / case.file).read_bytes().decode(errors="replace")
    return line_and_column(text, case.mark)


def room_at(place: Place) -> int:
    """Return how many characters follow in the line of a place, at least 1."""
    if place.line is None or place.column is None:
        return 1
    lines = Path(place.file).read_bytes().decode(errors="replace").split("\n")
    return max(len(lines[place.line - 1]) - place.column + 1, 1)


def assert_readable(finding: Finding) -> None:
    """A finding says what is wrong in one line, and what to do in two at most."""
    assert len(finding.hint) <= 2
    for line in (finding.message, *finding.cause, *finding.hint):
        assert line
        assert line == line.strip()
        assert len(line.splitlines()) == 1


@pytest.mark.parametrize("case", parameters([case for case in CASES if case.mends]))
def test_a_safe_fix_takes_the_mistake_away_and_brings_no_other(case, tmp_path):
    root = written(case, tmp_path)
    result = review(root)
    for _ in range(MOST_ROUNDS):
        if case.code in codes(result.findings):
            package = read_package(result.packages[0].folder)
            apply_fixes(package, [it for it in result.findings if it.code == case.code])
            result = review(root)
    assert codes(performed(result)) == set(case.also)


@pytest.mark.parametrize("case", parameters(cases_routing.ENV_CASES))
def test_what_production_hides_is_an_error_there(case, tmp_path):
    (finding,) = performed(review(written(case, tmp_path), profile="production"))
    assert (finding.code, finding.severity) == (case.code, "error")


def test_every_code_has_a_case():
    linked = {"LINK001", "LINK002", "LINK004"}
    assert {case.code for case in CASES} | linked | BUILT | GENERATED == set(CATALOGUE)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("LINK001", "import no_such_library\n\n\ndef look() -> str: ...\n"),
        ("LINK002", "from re import Match\n\n\ndef look(found: Match) -> str: ...\n"),
    ],
)
def test_what_only_running_the_code_can_tell_is_found_when_it_is_loaded(code, text):
    with closing(PythonToolLoader()) as loader, pytest.raises(LinkError) as raised:
        loader.load("digest", {"tools/a.py": text.encode()}, {"look": ("tools/a.py", "look")})
    (finding,) = raised.value.findings
    assert (finding.code, finding.severity) == (code, CATALOGUE[code].severity)
    assert finding.place.line
    assert_readable(finding)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("tools.a:lok", "tools.a does not define lok"),
        ("no_such_library.a:look", "no_such_library.a:look cannot be found"),
        ("local:look", "local:look is defined in code that is not loaded here"),
    ],
)
def test_an_object_in_code_that_is_not_here_is_found_when_it_is_loaded(reference, message):
    engine = {"kind": "function", "function": reference}
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W"},
            "agents": [{"agent_name": "a"}],
            "board": {"artifacts": [], "agents": [{"agent": "a", "engines": [engine]}]},
        }
    )
    code = {"tools/a.py": b"def look(inputs): ...\n"}
    with closing(PythonToolLoader()) as loader, pytest.raises(LinkError) as raised:
        link(spec, code, loader)
    (finding,) = raised.value.findings
    assert (finding.code, finding.severity) == ("LINK004", CATALOGUE["LINK004"].severity)
    assert message in finding.message
    assert_readable(finding)


def test_what_is_not_performed_does_not_run():
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "variables": {
                "late": {
                    "type": "bool",
                    "source": {"type": "derived", "triggers": [{"type": "x:full_moon"}]},
                }
            },
        }
    )
    with closing(PythonToolLoader()) as loader, pytest.raises(LinkError) as raised:
        link(spec, {}, loader)
    (finding,) = raised.value.findings
    assert (finding.code, finding.severity) == ("LINK003", CATALOGUE["LINK003"].severity)
    assert "a trigger of late, x:full_moon, which no installed plug-in adds" in finding.message
    assert_readable(finding)


@pytest.mark.parametrize("family", FAMILIES)
def test_codes_are_well_formed_and_in_their_family(family):
    listed = [entry.code for entry in FAMILIES[family]]
    assert listed == sorted(listed)
    for code in listed:
        assert re.fullmatch(rf"{family}\d{{3}}", code)


def test_no_code_stands_for_two_things():
    assert len(CATALOGUE) == sum(len(entries) for entries in FAMILIES.values())


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.code)
def test_every_entry_of_the_catalogue_is_complete(entry):
    for text in (entry.title, entry.why, entry.fix, entry.example):
        assert text.strip()
    assert "\n" not in entry.title


def codes_in_reader() -> list[str]:
    """Return the codes that stand as texts in the modules of `weft.packages`, each once."""
    nodes = [
        node
        for path in Path(weft.packages.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
    ]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return [text for text in texts if isinstance(text, str) and CODE.fullmatch(text)]


def test_every_code_is_raised_by_one_rule_by_the_reader_or_by_linking():
    by_rules = [rule.code for rule in RULES]
    linked = [it.code for it in FAMILIES["LINK"] if it.code not in by_rules]
    raised = [*by_rules, *WORKSPACE_RULES, *codes_in_reader(), *linked, *BUILT, *GENERATED]
    assert sorted(raised) == sorted(CATALOGUE)
