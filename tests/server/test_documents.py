"""Documents and collections over HTTP: written and found by developers of one tenant."""

import asyncio
from contextlib import ExitStack

import pytest

from support.retrieval_play import INSECTS, by_keywords, collection_database
from support.server_play import serving


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(request, tmp_path_factory, postgres_url):
    """A server with two tenants, one of which has passages; in files or in PostgreSQL."""
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "workflows").mkdir()
    settings = {"WEFT_EMBEDDINGS": "none"}

    async def add() -> None:
        async with by_keywords(folder, settings.get("WEFT_STORE", "")) as collections:
            metadata = {"topic": "insects"}
            await collections.add_texts("Insects", INSECTS, metadata=metadata, app="shop")

    with ExitStack() as stack:
        if request.param == "postgresql":
            settings["WEFT_STORE"] = stack.enter_context(collection_database(postgres_url))
        asyncio.run(add())
        server = stack.enter_context(serving(folder, settings))
        for app in ("shop", "clinic"):
            server.post("/api/apps", {"app": app}, key=server.key("root", "administrator"))
        yield server


def key(server, app="shop", *roles):
    return server.key("dora", *(roles or ("developer",)), app=app)


def test_document_is_written_read_and_deleted(server):
    path = "/api/documents/Customers/ada"
    made = server.send("PUT", path, {"tier": "gold", "address": {"city": "Ulm"}}, key=key(server))
    assert made["document"] == {"_id": "ada", "tier": "gold", "address": {"city": "Ulm"}}
    changed = server.send("PUT", path, {"address.city": "Bonn"}, key=key(server))["document"]
    assert changed == {"_id": "ada", "tier": "gold", "address": {"city": "Bonn"}}
    assert server.get(path, key=key(server)) == {"document": changed}
    listed = server.get("/api/documents", key=key(server))["items"]
    assert {"collection": "Customers", "documents": 1} in listed
    server.send("DELETE", path, key=key(server))
    server.send("DELETE", path, key=key(server), status=404)
    server.get(path, key=key(server), status=404)


def test_documents_are_uploaded_and_listed_in_pages(server):
    path = "/api/documents/Orders"
    new = [{"_id": f"a/{number}", "total": number} for number in range(5)]
    keys = server.send("PUT", path, [*new, {"total": 9}], key=key(server))["keys"]
    assert server.send("PUT", path, [*new, {"total": 9}], key=key(server))["keys"] == keys
    found, cursor = [], ""
    while cursor is not None:
        page = server.get(f"{path}?limit=4{cursor}", key=key(server))
        found += page["items"]
        cursor = page["next"] and f"&cursor={page['next']}"
    assert [document["_id"] for document in found] == sorted(keys)
    assert server.get(f"{path}/a/3", key=key(server))["document"]["total"] == 3


def test_collection_of_documents_is_deleted(server):
    path = "/api/documents/Old"
    server.send("PUT", path, [{"n": n} for n in range(130)], key=key(server))
    server.send("PUT", path, [{"n": 1}], key=key(server, "clinic"))
    assert server.send("DELETE", path, key=key(server)) == {"deleted": 130}
    server.send("DELETE", path, key=key(server), status=404)
    assert len(server.get(path, key=key(server, "clinic"))["items"]) == 1
    server.send("DELETE", path, key=key(server, "clinic"))


def test_wrong_documents_are_refused(server):
    path = "/api/documents/Orders"
    said = server.send("PUT", path, [{"a": 1}, {"a.b.": 1}], key=key(server), status=422)
    assert said["message"].startswith("document 2: ")
    for body in ([], {}, [1], [{"_id": 3}]):
        server.send("PUT", path, body, key=key(server), status=422)
    for body in ({"_id": "other"}, {"app_id": "clinic"}, {"$set": 1}, [1], 3):
        server.send("PUT", f"{path}/x", body, key=key(server), status=422)
    server.send("PUT", "/api/documents/a$b/x", {"a": 1}, key=key(server), status=422)
    server.get(f"{path}?cursor=nonsense", key=key(server), status=422)
    server.get(f"{path}/x", key=key(server), status=404)


def test_documents_of_a_tenant_are_not_those_of_others(server):
    path = "/api/documents/Secrets/ada"
    server.send("PUT", path, {"pin": "4711"}, key=key(server))
    other = key(server, "clinic")
    assert server.get("/api/documents", key=other)["items"] == []
    assert server.get("/api/documents/Secrets", key=other)["items"] == []
    there = server.call("GET", path, key=other)
    missing = server.call("GET", path.replace("ada", "bob"), key=other)
    assert there.status == missing.status == 404
    assert there.content.replace(b"ada", b"bob") == missing.content
    server.send("DELETE", path, key=other, status=404)
    assert server.get(path, key=key(server))["document"]["pin"] == "4711"


def test_collections_are_listed_and_searched(server):
    found = server.get("/api/collections", key=key(server))["items"]
    assert found == [
        {
            "collection": "Insects",
            "sources": 3,
            "passages": 3,
            "embedder": None,
            "keys": found[0]["keys"],
        }
    ]
    assert "topic" in found[0]["keys"]
    path = "/api/collections/Insects/search"
    body = {"query": "trail of scent", "top_k": 1, "filters": {"topic": "insects"}}
    [passage] = server.post(path, body, key=key(server))["items"]
    assert (passage["source_id"], passage["content"]) == ("ants", INSECTS["ants"])
    assert 0 < passage["score"] <= 1
    nothing = {"query": "trail", "filters": {"topic": ["cars", "trains"]}}
    assert server.post(path, nothing, key=key(server))["items"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"query": ""},
        {"query": "  "},
        {"query": "x", "top_k": 0},
        {"query": "x", "min_relevance": 2},
        {"query": "x", "filters": {"color": "red"}},
        {"query": "x", "filters": {"topic": {"a": 1}}},
    ],
    ids=str,
)
def test_wrong_search_is_refused(server, body):
    path = "/api/collections/Insects/search"
    assert server.post(path, body, key=key(server), status=422)["message"]


def test_collections_of_a_tenant_are_not_those_of_others(server):
    other = key(server, "clinic")
    assert server.get("/api/collections", key=other)["items"] == []
    body = {"query": "bees"}
    said = server.post("/api/collections/Insects/search", body, key=other, status=404)
    missing = server.post("/api/collections/Nothing/search", body, key=other, status=404)
    assert said["message"].replace("Insects", "Nothing") == missing["message"]
    assert said["hint"] == missing["hint"] == []
    near = server.post("/api/collections/Insect/search", body, key=key(server), status=404)
    assert near["hint"] == ["did you mean Insects?"]


@pytest.mark.parametrize("role", ["end_user", "operator"])
def test_documents_and_collections_are_for_developers(server, role):
    for method, path, body in (
        ("GET", "/api/documents", None),
        ("GET", "/api/documents/Customers", None),
        ("PUT", "/api/documents/Customers", [{"a": 1}]),
        ("DELETE", "/api/documents/Customers", None),
        ("GET", "/api/documents/Customers/ada", None),
        ("PUT", "/api/documents/Customers/ada", {"a": 1}),
        ("DELETE", "/api/documents/Customers/ada", None),
        ("GET", "/api/collections", None),
        ("POST", "/api/collections/Insects/search", {"query": "bees"}),
    ):
        said = server.send(method, path, body, key=key(server, "shop", role), status=404)
        assert said["message"] == "not found"
