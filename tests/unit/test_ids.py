"""Names: which one a person most likely meant."""

import pytest

from weft.ids import MOST_COMPARED, nearest


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Biling", "Billing"),
        ("aks", "ask"),
        ("fin", "finance"),
        ("body", "the_body"),
        ("context-aware routing", "ContextAwareRouting"),
    ],
)
def test_what_is_close_is_suggested(name: str, meant: str):
    assert nearest(name, [meant, "other"]) == meant


@pytest.mark.parametrize(
    ("name", "other"),
    [("report", "Support"), ("run", "return"), ("vars", "variables"), ("a", "ab"), ("", "a")],
)
def test_what_is_only_a_little_alike_is_not(name: str, other: str):
    assert nearest(name, [other]) is None


def test_among_very_many_only_the_same_word_is_looked_for():
    many = [f"word{number}" for number in range(MOST_COMPARED + 1)]
    assert nearest("wrod1", many) is None
    assert nearest("Word_1", many) == "word1"
