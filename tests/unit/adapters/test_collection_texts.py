"""What is read from files, and how texts are cut into passages."""

import io
import sys
from itertools import pairwise

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.adapters.collections.texts import Chunking, Text, Unreadable, kind_of, passages, read_text
from weft.errors import RetrievalError

WORDS = st.text(alphabet="ab. \n\u3000é", max_size=400)


@given(text=WORDS, size=st.integers(50, 90), overlap=st.integers(0, 25))
def test_passages_cover_a_text_and_say_where_they_stand(text, size, overlap):
    found = passages(Text(text), Chunking(size, overlap))
    covered: set[int] = set()
    for message in found:
        start, end = message.place["start"], message.place["end"]
        assert text[start:end] == message.content == message.content.strip()
        assert 0 < len(message.content) <= size
        assert message.place["line"] == text.count("\n", 0, start) + 1
        covered.update(range(start, end))
    assert {at for at, letter in enumerate(text) if not letter.isspace()} <= covered
    starts = [finding.place["start"] for finding in found]
    assert starts == sorted(set(starts))


def test_passages_overlap_and_end_where_a_sentence_does():
    text = " ".join(f"This is sentence number {number}." for number in range(40))
    found = passages(Text(text), Chunking(200, 60))
    assert all(message.content.endswith(".") for message in found)
    for one, other in pairwise(found):
        assert other.place["start"] < one.place["end"]


def test_paragraphs_are_kept_together():
    text = "A first paragraph of some words.\n\nA second one, which is not much longer than that."
    assert [passage.content for passage in passages(Text(text), Chunking(60, 0))] == text.split(
        "\n\n"
    )


def test_a_word_without_end_is_cut():
    found = passages(Text("x" * 120), Chunking(50, 10))
    assert [len(message.content) for message in found] == [50, 50, 20]
    assert passages(Text(" \n "), Chunking()) == []


@pytest.mark.parametrize(("size", "overlap"), [(49, 0), (20_001, 0), (100, 51), (100, -1)])
def test_passages_that_cannot_be(size, overlap):
    with pytest.raises(RetrievalError, match="cannot"):
        Chunking(size, overlap)


def test_text_and_markdown():
    assert read_text(b"\xef\xbb\xbfa\r\nb", "text") == Text("a\nb")
    assert kind_of(".MD") == "markdown"
    assert kind_of(".py") is None


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"a\0b"])
def test_non_text_values(raw):
    with pytest.raises(Unreadable, match="it is not text"):
        read_text(raw, "text")


def test_html():
    page = (
        b"<html><head><title>Bees &amp; ants</title><style>p {}</style></head><body>"
        b"<script>let a = 1 < 2</script><p>Bees\n  <b>dance</b>.</p></script>"
        b"<ul><li>one<li>two</ul>"
    )
    assert read_text(page, "html") == Text("Bees & ants\nBees dance.\none\ntwo")


def pdf(*pages: str) -> bytes:
    """Return a PDF of these pages, written by hand."""
    count = len(pages)
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(count))
    font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    bodies = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
    ]
    for at, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET"
        bodies.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources {font} "
            f"/Contents {4 + 2 * at} 0 R >>"
        )
        bodies.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(bodies) + 1
    return (
        out
        + (
            f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n"
            f"<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
        ).encode()
    )


def test_pdf_says_the_page():
    text = read_text(pdf("Bees dance.", "Ants smell."), "pdf")
    assert [word.strip() for word in text.content.split("\n\n")] == ["Bees dance.", "Ants smell."]
    found = passages(text, Chunking(50, 0))
    assert [finding.place["page"] for finding in found] == [1]
    second = passages(Text(text.content[text.pages[1] :], (0,)), Chunking())
    assert second[0].content == "Ants smell."


def test_docx():
    document = docx.Document()
    document.add_paragraph("Bees dance.")
    document.add_paragraph("")
    table = document.add_table(1, 2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "ants", "smell"
    file = io.BytesIO()
    document.save(file)
    assert read_text(file.getvalue(), "docx") == Text("Bees dance.\n\nants | smell")


@pytest.mark.parametrize(
    ("raw", "kind", "why"),
    [
        (b"nothing", "pdf", "it cannot be read as PDF"),
        (b"nothing", "docx", "it cannot be read as DOCX"),
        (pdf(""), "pdf", "it has no text"),
    ],
)
def test_files_that_cannot_be_read(raw, kind, why):
    with pytest.raises(Unreadable, match=why):
        read_text(raw, kind)


@pytest.mark.parametrize(("kind", "library"), [("pdf", "pypdf"), ("docx", "docx")])
def test_a_library_that_is_missing_is_named(kind, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(Unreadable, match=rf'pip install "weft-agents\[{kind}\]"'):
        read_text(b"", kind)
