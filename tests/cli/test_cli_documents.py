"""weft documents: trying documents out without a database server, and what is refused."""

import asyncio
import json
import shlex

import pytest
from pymongo import MongoClient

from support.cases import scenario_tests
from support.terminal_play import Terminal
from weft.adapters.sql.postgres.schema import migrate
from weft.cli.commands.table import COMMANDS


@pytest.fixture
def shop(weft, workspace, monkeypatch, prepared):
    """A workspace with documents."""
    monkeypatch.delenv("WEFT_DOCUMENTS", raising=False)
    monkeypatch.delenv("WEFT_DOCUMENTS_TENANT_FIELD", raising=False)

    def put():
        weft("documents", "put", "Customers", '{"_id": "ada", "name": "Ada", "tier": "gold"}')
        weft("documents", "put", "Customers", '{"name": "Sam"}', "--key", "sam")
        weft("documents", "put", "Orders", '{"_id": "A-1", "total": 45}')

    prepared("shop", put)
    return workspace


def test_list(weft, shop):
    assert weft("documents", "list").out == "Customers\t2 documents\nOrders\t1 document\n"
    listed = weft("documents", "list", "--json").data["collections"]
    assert listed == [
        {"collection": "Customers", "documents": 2},
        {"collection": "Orders", "documents": 1},
    ]
    result = weft("documents", "list", "Customers")
    assert result.out == 'ada\t{"name": "Ada", "tier": "gold"}\nsam\t{"name": "Sam"}\n'
    assert result.err == ""


def test_get_and_find(weft, shop):
    result = weft("documents", "get", "Customers", "ada")
    assert json.loads(result.out) == {"_id": "ada", "name": "Ada", "tier": "gold"}
    found = weft("documents", "find", "Orders", '{"total": {"$lt": 50}}', "--json").data
    assert found["document"] == {"_id": "A-1", "total": 45}
    weft("documents", "put", "Customers", '{"tier": "new"}', "--key", "sam")
    assert weft("documents", "find", "Customers", "--json").data["document"]["_id"] == "sam"


def test_put_sets_fields_and_says_the_key(weft, shop):
    result = weft("documents", "put", "Customers", '{"tier": "silver"}', "--key", "ada")
    assert result.out == "put Customers ada\n"
    made = weft("documents", "put", "Customers", '{"name": "Eve"}', "--json").data
    again = weft("documents", "put", "Customers", '{"name": "Eve"}', "--json").data
    assert made == again
    assert made["collection"] == "Customers"
    found = weft("documents", "get", "Customers", made["key"], "--json").data["document"]
    assert found == {"_id": made["key"], "name": "Eve"}
    kept = weft("documents", "get", "Customers", "ada", "--json").data["document"]
    assert kept == {"_id": "ada", "name": "Ada", "tier": "silver"}


def test_put_from_a_file(weft, shop):
    (shop / "eve.json").write_text('\ufeff{"_id": "eve", "name": "Eve"}', encoding="utf-8")
    assert weft("documents", "put", "Customers", "@eve.json").out == "put Customers eve\n"
    missing = weft("documents", "put", "Customers", "@nowhere.json")
    assert (missing.code, missing.err.splitlines()[0]) == (
        6,
        "error[CLI006]: cannot read nowhere.json: No such file or directory",
    )


def test_binary_file_is_refused(weft, shop):
    (shop / "some.json").write_bytes(b"\xff\xfe[")
    result = weft("documents", "import", "some.json")
    assert result.code == 2
    assert "some.json is not UTF-8 text" in result.err


@pytest.mark.parametrize(
    "text",
    [
        '[{"_id": "a", "n": 1}, {"n": 2}]',
        '{"_id": "a", "n": 1}\n\n{"n": 2}\n',
    ],
    ids=["list", "lines"],
)
def test_import_into_a_collection(weft, shop, text):
    (shop / "some.json").write_text(text)
    for _ in range(2):
        result = weft("documents", "import", "some.json", "--collection", "New")
        assert result.out == "put 2 documents\n"
    first, second = weft("documents", "list", "New", "--json").data["documents"]
    assert first == {"_id": "a", "n": 1}
    assert second == {"_id": second["_id"], "n": 2}


def test_import_of_several_collections(weft, shop):
    lines = [
        {"collection": "Some", "document": {"_id": "a"}},
        {"collection": "Some", "database": "archive", "document": {"_id": "b"}},
    ]
    (shop / "some.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert weft("documents", "import", "some.jsonl", "--json").data["documents"] == 2
    assert weft("documents", "list", "--database", "archive").out == "Some\t1 document\n"
    assert weft("documents", "get", "Some", "b", "--database", "archive").code == 0
    assert weft("documents", "get", "Some", "b").code == 6


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["get", "Custmers", "ada"],
            6,
            'document collection "Custmers"\n  hint:  did you mean',
        ),
        (
            ["list", "Xyz"],
            6,
            'document collection "Xyz"\n  hint:  available: Customers, Orders',
        ),
        (["get", "Customers", "x"], 6, 'Customers has no document "x"\n  hint:  list them: weft'),
        (["find", "Orders", '{"total": 1}'], 6, "Orders has no document that matches\n"),
        (
            ["find", "Orders", '{"total": '],
            2,
            "the query is not valid JSON: Expecting value: line 1",
        ),
        (["find", "Orders", "[]"], 2, "the query is not an object\n"),
        (["find", "Orders", '{"n": {"$gtt": 1}}'], 2, "a query has no $gtt\n  hint:  did you mean"),
        (["find", "Orders", '{"app_id": "x"}'], 2, "app_id is the tenant field, which must be"),
        (["put", "Orders", "{}x"], 2, "the document is not valid JSON: Extra data"),
        (["put", "Orders", '"text"'], 2, "the document is not an object\n"),
        (["put", "Orders", '{"_id": 5}'], 2, "the key of a document must be text, not 5\n"),
        (["put", "Orders", '{"_id": "a"}', "--key", "b"], 2, 'differs from --key "b"'),
        (["put", "$x", "{}"], 2, "invalid collection name '$x'"),
        (["import", "x.json", "--database", "b"], 2, "--database needs --collection"),
        (["lst"], 2, "did you mean weft documents list?"),
    ],
    ids=lambda item: " ".join(item) if isinstance(item, list) else "",
)
def test_errors_are_reported(weft, shop, words, code, said):
    result = weft("documents", *words)
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    failed = weft("documents", *words, "--json")
    assert failed.data["error"]["code"] == f"CLI00{code}"


def test_looking_makes_nothing(weft, workspace, monkeypatch):
    monkeypatch.delenv("WEFT_DOCUMENTS", raising=False)
    assert weft("documents", "list", "--json").data["collections"] == []
    assert "no documents; create one: weft documents put Customers" in weft("documents", "list").err
    for words in (["get", "A", "b"], ["find", "A"], ["delete", "A", "b"], ["list", "A"]):
        result = weft("documents", *words)
        assert result.code == 6
        assert "there are no documents yet" in result.err
    assert not (workspace / ".weft").exists()


def test_a_file_elsewhere(weft, workspace, monkeypatch):
    monkeypatch.setenv("WEFT_DOCUMENTS", "mine.db")
    assert weft("documents", "put", "A", '{"_id": "b"}').code == 0
    assert (workspace / "mine.db").is_file()
    assert not (workspace / ".weft").exists()
    (workspace / "mine.db").write_text("x" * 2000)
    result = weft("documents", "list")
    assert result.code == 3
    assert "documents mine.db: the file is not a database" in result.err


def test_mongodb(weft, workspace, mongodb_database, monkeypatch):
    monkeypatch.setenv("WEFT_DOCUMENTS", mongodb_database)
    monkeypatch.setenv("WEFT_DOCUMENTS_TENANT_FIELD", "enterprise_id")
    assert weft("documents", "list").code == 0
    assert weft("documents", "put", "A", '{"_id": "b", "n": 1}').out == "put A b\n"
    found = weft("documents", "get", "A", "b", "--json").data["document"]
    assert found == {"_id": "b", "n": 1}
    with MongoClient(mongodb_database) as client:
        kept = client.get_default_database()["A"].find_one()
    assert kept == {"_id": "b", "n": 1, "enterprise_id": "local"}
    assert not (workspace / ".weft").exists()


@pytest.mark.parametrize("setting", ["WEFT_STORE", "WEFT_DOCUMENTS"])
def test_postgresql(weft, workspace, postgres_database, monkeypatch, setting):
    for name in ("WEFT_STORE", "WEFT_DOCUMENTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(setting, postgres_database)
    asyncio.run(migrate(postgres_database))
    assert weft("documents", "put", "A", '{"_id": "b", "n": 1}').out == "put A b\n"
    found = weft("documents", "find", "A", '{"n": 1}', "--json").data["document"]
    assert found == {"_id": "b", "n": 1}
    assert not (workspace / ".weft").exists()
    assert "\tdocuments\tpostgresql://: 1 document in 1 collection\t" in weft("doctor").out


def test_the_examples_of_the_help_pages_work(weft, workspace, monkeypatch):
    monkeypatch.delenv("WEFT_DOCUMENTS", raising=False)
    weft("init", "shop")
    monkeypatch.chdir(workspace / "shop")
    (workspace / "shop" / "customers.json").write_text("[]")
    (group,) = [command for command in COMMANDS if command.name == "documents"]
    for part in group.parts:
        for example in part.page().examples:
            result = weft(*shlex.split(example)[1:])
            assert result.code == 0, (example, result.err)


def test_a_terminal_gets_lines_that_fit(weft, shop):
    weft("documents", "put", "Customers", json.dumps({"_id": "eve", "text": "word " * 50}))
    with Terminal("documents", "list", "Customers", cwd=shop, columns=40) as terminal:
        assert terminal.end() == 0
    lines = terminal.shown.splitlines()
    assert [line.split()[0] for line in lines] == ["ada", "eve", "sam"]
    assert lines[1].endswith("...")
    assert all(len(line) <= 40 for line in lines)


test_scenarios = scenario_tests(__file__)
