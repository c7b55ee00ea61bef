"""Links between pages lead to existing files and headings."""

import re
from pathlib import Path

import pytest

from weft.catalogue import CATALOGUE, FAMILIES

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(page: Path) -> set[str]:
    """Return what headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != "CHANGELOG.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_finding_on_a_page_exists(page):
    families = "|".join(FAMILIES)
    named = re.findall(rf"\b(?:{families})\d{{3}}\b", page.read_text(encoding="utf-8"))
    assert set(named) <= {entry.code for entry in CATALOGUE.values()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_an_existing_heading(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        if ":" in name:
            continue  # not one of ours
        found = (page.parent / name) if name else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target
