"""Names: which one a person most likely meant."""

import pytest

from weft.ids import MOST_COMPARED, nearest, suggestion


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
def test_close_name_is_suggested(name: str, meant: str):
    assert nearest(name, [meant, "other"]) == meant


@pytest.mark.parametrize(
    ("name", "other"),
    [("report", "Support"), ("run", "return"), ("vars", "variables"), ("a", "ab"), ("", "a")],
)
def test_slightly_similar_texts_do_not_match(name: str, other: str):
    assert nearest(name, [other]) is None


def test_among_very_many_only_the_same_word_is_looked_for():
    many = [f"word{number}" for number in range(MOST_COMPARED + 1)]
    assert nearest("wrod1", many) is None
    assert nearest("Word_1", many) == "word1"


@pytest.mark.parametrize(
    ("name", "known", "otherwise", "hint"),
    [
        ("Biling", ["Billing"], "", "did you mean Billing?"),
        ("Biling", ["Billing"], "declare it", "did you mean Billing?"),
        ("xyz", ["Billing", "Tech"], "", "available: Billing, Tech"),
        ("xyz", [], "", "available: none"),
        ("xyz", ["Billing"], "declare it", "declare it"),
    ],
)
def test_hint_for_an_unknown_name(name, known, otherwise, hint):
    assert suggestion(name, known, otherwise) == hint
