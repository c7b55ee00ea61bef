"""Documents and queries for a store under test."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from weft.findings import Json
from weft.ports.documents import Collection, Document, Documents
from weft.ports.scope import Scope

#: Opens the store under test. A new store for every check, the same one within a check.
OpenDocuments: TypeAlias = Callable[[], Awaitable[Documents]]
Check: TypeAlias = Callable[[OpenDocuments], Awaitable[None]]

SHOP: Final = Scope("shop", "ann")
BANK: Final = Scope("bank", "ann")
ORDERS: Final = Collection("Orders")
ARCHIVED: Final = Collection("Orders", "weft_archive")

#: Values of every JSON type.
ANYTHING: Final[Document] = {
    "nothing": None,
    "yes": True,
    "whole": -(2**62),
    "part": 0.1,
    "text": "äöü \x00 🙂 \\ \" '",
    "list": [[], {}, [1, "2", None, 0.30000000000000004]],
    "nested": {"": 1, "a.b": 2, "$c": {"deep": {"deeper": [{"deepest": False}]}}},
}

#: Names of fields with a special meaning elsewhere.
NASTY: Final = (
    *("with space", 'quo"te', "apo'strophe", "back\\slash", "semi;colon", "-- comment", "0", "é🙂"),
    *("[0]", "*", "%s", "{x}", "new\nline", "__class__", "select", "key", "body", "app", "seq"),
)

STORED: Final[dict[str, Document]] = {
    "one": {"n": 1, "text": "b", "yes": True, "tags": ["a", "b"], "at": {"city": "Rome"}},
    "two": {"n": 2.5, "text": "c", "yes": False, "tags": [], "at": {"city": None}},
    "ten": {"n": "10", "text": "é", "yes": None, "tags": "a", "at": "Rome"},
    "many": {"n": [1, 20], "lines": [{"sku": "x"}, {"sku": "y", "left": 3}], "tags": [["a"]]},
    "none": {},
    "large": {"n": 2**53 + 1, "text": "b\x00c", "tags": [None], "at": [{"city": "Oslo"}]},
}

#: The documents that each query matches, as in MongoDB.
FITTING: Final[tuple[tuple[dict[str, Json], set[str]], ...]] = (
    ({}, set(STORED)),
    ({"n": 1}, {"one", "many"}),
    ({"n": 1.0}, {"one", "many"}),
    ({"n": 2.5}, {"two"}),
    ({"n": "10"}, {"ten"}),
    ({"n": 10}, set()),
    ({"n": 2**53 + 1}, {"large"}),
    ({"n": [1, 20]}, {"many"}),
    ({"n": None}, {"none"}),
    ({"n": {"$ne": 1}}, {"two", "ten", "none", "large"}),
    ({"n": {"$ne": None}}, {"one", "two", "ten", "many", "large"}),
    ({"n": {"$gt": 1}}, {"two", "many", "large"}),
    ({"n": {"$gte": 2.5, "$lt": 21}}, {"two", "many"}),
    ({"n": {"$lte": 1}}, {"one", "many"}),
    ({"n": {"$lt": "2"}}, {"ten"}),
    ({"n": {"$gt": 2**53}}, {"large"}),
    ({"n": {"$in": [2.5, "10", None]}}, {"two", "ten", "none"}),
    ({"n": {"$in": []}}, set()),
    ({"n": {"$exists": True}}, {"one", "two", "ten", "many", "large"}),
    ({"n": {"$exists": False}}, {"none"}),
    ({"yes": True}, {"one"}),
    ({"yes": 1}, set()),
    ({"yes": None}, {"ten", "many", "none", "large"}),
    ({"yes": {"$exists": True}}, {"one", "two", "ten"}),
    ({"text": "b"}, {"one"}),
    ({"text": "b\x00c"}, {"large"}),
    ({"text": {"$gt": "b"}}, {"two", "ten", "large"}),
    ({"text": {"$gte": "c", "$lt": "z"}}, {"two"}),
    ({"tags": "a"}, {"one", "ten"}),
    ({"tags": ["a"]}, {"many"}),
    ({"tags": []}, {"two"}),
    ({"tags": None}, {"none", "large"}),
    ({"tags": {"$ne": "a"}}, {"two", "many", "none", "large"}),
    ({"tags": {"$in": ["b", "z"]}}, {"one"}),
    ({"at.city": "Rome"}, {"one"}),
    ({"at.city": "Oslo"}, {"large"}),
    ({"at.city": None}, {"two", "ten", "many", "none"}),
    ({"at": {"city": "Rome"}}, {"one"}),
    ({"at.0.city": "Oslo"}, {"large"}),
    ({"lines.sku": "y"}, {"many"}),
    ({"lines.1.sku": "y"}, {"many"}),
    ({"lines.0.sku": "y"}, set()),
    ({"lines.left": {"$gte": 3}}, {"many"}),
    ({"$or": [{"n": 1}, {"text": "c"}]}, {"one", "two", "many"}),
    ({"$or": [{"n": {"$lt": 2}}, {"at.city": None}]}, {"one", "two", "ten", "many", "none"}),
    ({"$and": [{"n": 1}, {"$or": [{"yes": True}, {"tags": "z"}]}]}, {"one"}),
    ({"text": "b", "n": {"$gt": 0}}, {"one"}),
    ({"_id": "one"}, {"one"}),
    ({"_id": {"$in": ["one", "two", "x"]}}, {"one", "two"}),
    ({"_id": {"$gte": "n", "$lt": "p"}}, {"one", "none"}),
    ({"_id": {"$ne": "one"}, "n": 1}, {"many"}),
)

#: Invalid queries.
REFUSED: Final[tuple[dict[str, Json], ...]] = (
    {"$where": "true"},
    {"n": {"$regex": "."}},
    {"n": {"$gt": None}},
    {"n": {"$in": 1}},
    {"$or": []},
    {"a..b": 1},
    {"n": "\ud800"},
)
