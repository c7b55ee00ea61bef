"""The codes of the command line, `weft explain` and the page of all codes."""

import re
from pathlib import Path

import pytest

from weft.catalogue import CATALOGUE
from weft.cli.codes import CODES, FAMILIES, findings_page
from weft.cli.failure import Exit, code_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "findings.md"
#: What the web page writes itself: a code as a text, or as the text of a field `code`.
WRITTEN = re.compile(r"""["'`]([A-Z]{2,}\d{3})["'`]|\bcode: ["'`](\w+)["'`]""")


def test_every_exit_code_that_fails_has_a_code():
    stopped = {Exit.DONE, Exit.INTERRUPTED, Exit.TERMINATED}
    failing = [outcome for outcome in Exit if outcome not in stopped]
    assert [code_of(outcome) for outcome in failing] == [entry.code for entry in FAMILIES["CLI"]]


def test_every_code_belongs_to_its_family_and_stands_once():
    listed = [(family, entry.code) for family, rules in FAMILIES.items() for entry in rules]
    assert all(code.removeprefix(family).isdigit() for family, code in listed)
    assert len(listed) == len(CODES)
    assert set(CATALOGUE) < set(CODES)


def test_every_code_that_the_web_page_writes_is_known():
    sources = [
        path
        for path in (ROOT / "web/src").rglob("*.ts*")
        if ".test." not in path.name and path.parent.name != "protocol"
    ]
    assert len(sources) > 100
    written = {
        found.group(1) or found.group(2)
        for path in sources
        for found in WRITTEN.finditer(path.read_text())
    }
    assert written - set(CODES) == set()
    assert WRITTEN.search('  code: "OFFLINE",')


def test_explain_a_code(weft):
    result = weft("explain", "schema008")
    entry = CODES["SCHEMA008"]
    assert result.code == 0
    assert result.out.startswith(f"error[SCHEMA008]: {entry.title}\n")
    for text in (entry.why, entry.fix, entry.example.splitlines()[0]):
        assert text in result.out


def test_explain_a_warning(weft):
    assert weft("explain", "SCHEMA010").out.startswith("warning[SCHEMA010]")


def test_explain_a_family(weft):
    lines = weft("explain", "schema").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == [
        finding.code for finding in FAMILIES["SCHEMA"]
    ]


def test_explain_lists_all_codes_with_tabs_when_piped(weft):
    lines = weft("explain").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == list(CODES)
    assert lines[0].split("\t") == ["SCHEMA001", "error", CODES["SCHEMA001"].title]


def test_explain_all_explains_all(weft):
    out = weft("explain", "--all").out
    assert all(entry.why in out for entry in CODES.values())


def test_explain_as_json(weft):
    data = weft("explain", "SCHEMA008", "--json").data
    assert data["schema_version"] == 1
    (entry,) = data["codes"]
    assert list(entry) == ["code", "severity", "title", "why", "fix", "example"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("SCHEMA08", "SCHEMA008"),
        ("SHEMA", "SCHEMA"),
        ("HAND01", "HAND010"),
        ("name1", "NAME001"),
        ("HADN7", "HAND007"),
        ("SCHEMA999999999999", max(finding.code for finding in FAMILIES["SCHEMA"])),
        ("CLI" + "9" * 5000, "CLI070"),
    ],
)
def test_an_unknown_code_is_not_found(weft, typed: str, meant: str):
    result = weft("explain", typed)
    assert result.code == 6
    assert f'error[CLI006]: unknown code "{typed}"' in result.err
    assert f"did you mean {meant}?" in result.err
    assert result.out == ""


def test_a_code_like_no_other_gets_no_suggestion(weft):
    result = weft("explain", "?!")
    assert result.code == 6
    assert "did you mean" not in result.err


def test_the_page_is_printed_and_written(weft, tmp_path: Path):
    printed = weft("explain", "--all", "--format", "markdown")
    assert printed.out == findings_page()
    (tmp_path / "docs").mkdir()
    written = weft("explain", "--all", "--write", tmp_path / "docs" / "findings.md")
    assert written.code == 0
    assert written.out == f"wrote {tmp_path / 'docs' / 'findings.md'}\n"
    assert weft("explain", "--write", tmp_path / "f", "--json").data["file"] == str(tmp_path / "f")
    assert (tmp_path / "docs" / "findings.md").read_text() == findings_page()


@pytest.mark.parametrize(
    "words",
    [
        ("SCHEMA008", "--all"),
        ("SCHEMA008", "--write", "f"),
        ("--format", "markdown"),
        ("--all", "--format", "markdown", "--json"),
    ],
)
def test_explain_refuses_contradictions(weft, words: tuple[str, ...]):
    assert weft("explain", *words).code == 2


def test_the_page_in_the_documents_is_current():
    assert PAGE.read_text(encoding="utf-8") == findings_page(), "write it: make generate"


def test_the_page_holds_every_code_once():
    page = findings_page()
    assert [line[4:] for line in page.splitlines() if line.startswith("### ")] == list(CODES)
    assert page.endswith("\n")
    assert not page.endswith("\n\n")


def test_the_page_fences_examples_that_hold_fences():
    fences = [line for line in findings_page().splitlines() if line.startswith("```")]
    assert len(fences) == 2 * len(CODES)
