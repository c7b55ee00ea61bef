"""The stores of documents that come with Weft, against the suite every store must pass."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from conformance import broken_documents as broken
from support.postgres_stores import store_place
from weft.adapters.documents.mongodb import MongoDocuments
from weft.adapters.documents.postgres import PostgresDocuments
from weft.adapters.documents.sqlite import SqliteDocuments
from weft.errors import WeftError
from weft.ports.documents import Documents
from weft.testing.documents import conformance, reading
from weft.testing.documents.conformance import (
    DOCUMENT_CHECKS,
    LASTING_DOCUMENT_CHECKS,
    OWN_DOCUMENT_CHECKS,
)
from weft.testing.documents.samples import ORDERS, OpenDocuments

NOTICED = {
    conformance.values_come_back: [broken.LosesNulls],
    conformance.fields_are_set: [broken.ReplacesDocuments],
    conformance.names_may_be_nasty: [broken.MisreadsQuotes],
    conformance.writers_make_one: [broken.MakesTwo],
    reading.queries_fit: [broken.IgnoresAlternatives],
    reading.fields_are_taken: [broken.TakesEverything],
    reading.many_are_found: [broken.IgnoresOrder],
    reading.pages_by_key: [broken.PagesFromTheStart],
    reading.tenants_are_apart: [broken.MixesTenants, broken.MixesTenantsInQueries],
    conformance.changes_are_reported: [broken.TellsTwice, broken.ForgetsPositions],
    conformance.closed_is_closed: [broken.NeverCloses],
    reading.the_last_written_is_found: [broken.TakesTheFirst],
    reading.tenants_may_name_alike: [broken.MixesTenants],
    conformance.deletions_are_reported: [broken.HidesDeletions],
    conformance.everything_is_there_again: [SqliteDocuments],
    conformance.stores_are_shared: [SqliteDocuments],
}


async def open_postgres(place) -> Documents:
    return PostgresDocuments(place.url, schema=place.schema)


async def open_mongodb(address: str) -> Documents:
    return MongoDocuments(address)


def play(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 60))


def sqlite(path: Path | str, kind: type[SqliteDocuments] = SqliteDocuments) -> OpenDocuments:
    return lambda: kind.open(path)


@pytest.mark.parametrize(
    "check", [*DOCUMENT_CHECKS, *OWN_DOCUMENT_CHECKS], ids=lambda check: check.__name__
)
def test_sqlite_in_memory(check):
    play(check(sqlite(":memory:")))


@pytest.mark.parametrize(
    "check",
    [*DOCUMENT_CHECKS, *OWN_DOCUMENT_CHECKS, *LASTING_DOCUMENT_CHECKS],
    ids=lambda check: check.__name__,
)
def test_sqlite(check, tmp_path):
    play(check(sqlite(tmp_path / "documents.db")))


@pytest.mark.parametrize(
    "check",
    [*DOCUMENT_CHECKS, *OWN_DOCUMENT_CHECKS, *LASTING_DOCUMENT_CHECKS],
    ids=lambda check: check.__name__,
)
def test_postgres(check, postgres_database):
    async def check_once():
        async with store_place(postgres_database) as place:
            await check(lambda: open_postgres(place))

    play(check_once())


@pytest.mark.parametrize(
    "check", [*DOCUMENT_CHECKS, *LASTING_DOCUMENT_CHECKS], ids=lambda check: check.__name__
)
def test_mongodb(check, mongodb_database):
    play(check(lambda: open_mongodb(mongodb_database)))


def test_mongodb_tells_deletions_where_it_keeps_what_was_deleted(mongodb_database):
    with MongoClient(mongodb_database) as client:
        keeping = {"enabled": True}
        client.get_default_database().create_collection(
            ORDERS.name, changeStreamPreAndPostImages=keeping
        )
    play(conformance.deletions_are_reported(lambda: open_mongodb(mongodb_database)))


@pytest.mark.parametrize(
    ("check", "kind"),
    [(check, kind) for check, kinds in NOTICED.items() for kind in kinds],
    ids=lambda check: check.__name__,
)
def test_the_suite_notices(check, kind, monkeypatch):
    monkeypatch.setattr(conformance, "SOON", 0.5)
    with pytest.raises((AssertionError, WeftError, StopAsyncIteration, TimeoutError, ValueError)):
        play(check(sqlite(":memory:", kind)))


def test_every_check_has_something_to_notice():
    assert set(NOTICED) == {*DOCUMENT_CHECKS, *OWN_DOCUMENT_CHECKS, *LASTING_DOCUMENT_CHECKS}
