"""Every code, raised end to end by a small mistake in a sound package, and by nothing else."""

import io
from collections import Counter
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from weft.adapters.python_tools.loader import PythonToolLoader
from weft.catalogue import CATALOGUE
from weft.engine.events import TurnEnded
from weft.engine.variables.access import WITHOUT_SCHEMA
from weft.engine.variables.trigger_index import Fires
from weft.errors import LinkError, PackageError
from weft.packages.archive.exporting import export_package
from weft.packages.archive.importing import import_package
from weft.packages.edit.fixes import apply_fixes
from weft.packages.reader import read_package
from weft.packages.review import review
from weft.runtime.workflow import link
from weft.spec.workflow import WorkflowSpec

FOLDER = Path(__file__).parent
#: The name of the package in every case.
NAME = "OrderDesk"
ARCHIVE = "SCHEMA015"
#: A fix is worked out on the text as it was read, so several take several rounds.
MOST_ROUNDS = 3
#: What only a program that builds a flow can do wrong: tests/unit/dsl/test_flow_refusals.py.
BUILT = {"FLOW002", "FLOW004", "FLOW011", "FLOW033", "FLOW034"}
#: What only the Generator reports: tests/unit/generator, tests/generator_mutations.
GENERATED = {code for code in CATALOGUE if code.startswith("GEN")}
#: What only scenarios find: tests/cli/test_cli_test.py.
TESTED = {"TEST001"}
#: What is found when code is loaded: tests below.
LINKED = {"LINK001", "LINK002", "LINK004"}
#: The sound packages declare one feature that is not supported, so every review reports it.
UNSUPPORTED = "LINK003"
MODEL_PROVIDERS = frozenset({"openai", "sample"})


class EveryNth(BaseModel):
    """The settings of a trigger that a plug-in adds."""

    model_config = ConfigDict(extra="forbid")

    n: int


class Nth:
    """A trigger that fires after every n-th turn."""

    settings = EveryNth

    def fires(self, settings, event, state):
        over = isinstance(event.data, TurnEnded) and state.turns % settings.n == 0
        return Fires(value=True) if over else None


KINDS = {"every_nth": Nth()}


def read_base(name):
    folder = FOLDER / "packages" / name
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


BASES = {path.name: read_base(path.name) for path in sorted((FOLDER / "packages").iterdir())}
CASES = [
    case
    for file in sorted((FOLDER / "mistakes").glob("*.yaml"))
    for case in yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
]


def parameters(cases):
    """Number the cases of each code."""
    met = Counter()
    numbered = []
    for case in cases:
        met[case["code"]] += 1
        numbered.append(pytest.param(case, id=f"{case['code']}-{met[case['code']]}"))
    return numbered


def edited(case):
    """Return the files of a case with the mistake in them."""
    files = dict(BASES[case.get("base", "conversation")])
    for edit in case["edits"]:
        match edit:
            case {"in": file, "old": old, "new": new}:
                text = files[file].decode()
                assert text.count(old) == 1, f"{old!r} must occur once in {file}"
                raw = text.replace(old, new).encode()
                files[file] = raw.replace(b"<0xE9>", b"\xe9")  # no UTF-8
            case {"cut": file, "to": length}:
                files[file] = files[file].decode()[:length].encode()
            case {"rename": old, "to": new}:
                files = {
                    name.replace(old, new): raw.replace(old.encode(), new.encode())
                    for name, raw in files.items()
                }
            case {"move": file, "to": name}:
                files[name] = files.pop(file)
            case {"add": file, "text": text}:
                assert file not in files
                files[file] = text.encode()
            case {"drop": file}:
                del files[file]
    return files


def write_files(folder, files):
    for name, raw in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


def write_case(case, folder):
    """Write the files of a case and return their folder."""
    root = folder / NAME
    if case["code"] == ARCHIVE:
        root.mkdir()
        (root / case["at"][0]).write_bytes(spoilt_archive(case, folder))
    else:
        write_files(root, edited(case))
    return root


def spoilt_archive(case, folder):
    """Pack the sound package, then replace its files under the old manifest."""
    source, target = folder / "source" / NAME, folder / "sound.zip"
    write_files(source, BASES["conversation"])
    export_package(source, target)
    raw = io.BytesIO()
    with ZipFile(target) as sound, ZipFile(raw, "w") as spoilt:
        spoilt.writestr("manifest.json", sound.read("manifest.json"))
        for name, content in edited(case).items():
            spoilt.writestr(name, content)
    return raw.getvalue()


def supported(found):
    """Leave out the feature of the sound packages that is not supported."""
    return tuple(finding for finding in found.findings if finding.code != UNSUPPORTED)


def findings(case, root):
    """Read and check what was written."""
    if case["code"] != ARCHIVE:
        suppressed = WITHOUT_SCHEMA if case.get("without_schema") else frozenset()
        found = review(root, kinds=KINDS, suppressed=suppressed, model_providers=MODEL_PROVIDERS)
        added = (
            finding for finding in found.findings if finding.place.file == str(root / case["at"][0])
        )
        return tuple(added) if case["code"] == UNSUPPORTED else supported(found)
    with pytest.raises(PackageError) as raised:
        import_package(root / case["at"][0], root / "workspace")
    assert not (root / "workspace").exists()
    return raised.value.findings


def codes(found):
    return {finding.code for finding in found}


@pytest.mark.parametrize(
    ("base", "name"),
    [("conversation", NAME), ("board", NAME), ("flow", NAME), ("workspace", "Workspace")],
)
@pytest.mark.parametrize("profile", ["development", "production"])
def test_sound_packages_have_no_findings(base, name, profile, tmp_path):
    write_files(tmp_path / name, BASES[base])
    assert supported(review(tmp_path / name, profile=profile)) == ()


@pytest.mark.parametrize("case", parameters(CASES))
def test_one_mistake_is_one_finding_at_its_place(case, tmp_path):
    root = write_case(case, tmp_path)
    found = findings(case, root)
    assert codes(found) == {case["code"], *case.get("also", ())}
    (finding,) = [finding for finding in found if finding.code == case["code"]]
    assert finding.message.replace(f"{root}/", "") == case["message"]
    assert finding.place.file == str(root / case["at"][0])
    assert (finding.place.line, finding.place.column) == place_of(case, root)
    assert 1 <= finding.place.length <= room_at(finding.place)
    assert (finding.fix is not None) == case.get("fixable", False)
    for finding in found:
        assert finding.severity == case.get("severity", CATALOGUE[finding.code].severity)
        assert_readable(finding)


def place_of(case, root):
    file, *mark = case["at"]
    if not mark:
        whole_text = (root / file).exists() and case["code"] != ARCHIVE
        return (1, 1) if whole_text else (None, None)
    text = (root / file).read_bytes().decode(errors="replace")
    assert mark == ["END"] or text.count(mark[0]) == 1, f"{mark} must occur once in {file}"
    start = len(text) if mark == ["END"] else text.index(mark[0])
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def room_at(place):
    """Return how many characters follow in the line of a place, at least 1."""
    if place.line is None or place.column is None:
        return 1
    lines = Path(place.file).read_bytes().decode(errors="replace").split("\n")
    return max(len(lines[place.line - 1]) - place.column + 1, 1)


def assert_readable(finding):
    """A finding says what is wrong in one line, and what to do in two at most."""
    assert len(finding.hint) <= 2
    for line in (finding.message, *finding.cause, *finding.hint):
        assert line
        assert line == line.strip()
        assert len(line.splitlines()) == 1


@pytest.mark.parametrize("case", parameters([case for case in CASES if case.get("fixable")]))
def test_safe_fix_removes_the_finding_and_adds_no_other(case, tmp_path):
    root = write_case(case, tmp_path)
    result = review(root)
    for _ in range(MOST_ROUNDS):
        if case["code"] in codes(result.findings):
            package = read_package(result.packages[0].folder)
            apply_fixes(
                package, [finding for finding in result.findings if finding.code == case["code"]]
            )
            result = review(root)
    assert codes(supported(result)) == set(case.get("also", ()))


IN_PRODUCTION = [case for case in CASES if case.get("error_in_production")]


@pytest.mark.parametrize("case", parameters(IN_PRODUCTION))
def test_environment_variables_are_errors_in_production(case, tmp_path):
    found = supported(review(write_case(case, tmp_path), profile="production"))
    assert [finding.severity for finding in found if finding.code == case["code"]] == ["error"]


def test_every_code_has_a_case():
    assert {case["code"] for case in CASES} | LINKED | BUILT | GENERATED | TESTED == set(CATALOGUE)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("LINK001", "import no_such_library\n\n\ndef look() -> str: ...\n"),
        ("LINK002", "from re import Match\n\n\ndef look(found: Match) -> str: ...\n"),
    ],
)
def test_code_that_cannot_be_loaded_is_a_finding(code, text):
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
def test_object_that_is_not_installed_here_is_a_finding(reference, message):
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


def test_unsupported_feature_does_not_run():
    triggers = [{"type": "x:full_moon"}]
    late = {"type": "bool", "source": {"type": "derived", "triggers": triggers}}
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "variables": {"late": late},
        }
    )
    with closing(PythonToolLoader()) as loader, pytest.raises(LinkError) as raised:
        link(spec, {}, loader)
    (finding,) = raised.value.findings
    assert (finding.code, finding.severity) == (UNSUPPORTED, CATALOGUE[UNSUPPORTED].severity)
    assert "a trigger of late, x:full_moon, which no installed plug-in adds" in finding.message
    assert_readable(finding)
