"""Hooks for the documentation site.

The pages at the root of the repository become pages of the site, links that lead out of the site
become plain text, and a page that would load something from another host fails the build.
"""

import ast
import re
from pathlib import Path
from posixpath import normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]

#: Pages of the site that are written at the root of the repository.
ROOT_PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "vulnerabilities.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
SITE_PATHS = {source: page for page, source in ROOT_PAGES.items()}

#: Pages that must describe every name in `__all__` of a module.
API_PAGES = {
    "api/weft.md": "weft",
    "api/board.md": "weft.board",
    "api/flow.md": "weft.flow",
    "api/retrieval.md": "weft.retrieval",
    "api/testing.md": "weft.testing",
    "api/client.md": "weft.client",
}
OTHER_API_PAGES = ("api/errors.md", "api/events.md")

MERMAID_SOURCE = ROOT / "tests/mermaid/node_modules/mermaid/dist/mermaid.min.js"
MERMAID_TARGET = "assets/javascripts/mermaid.min.js"

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
REMOTE = re.compile(
    r"<(?:script|img|iframe)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>"
    r"|<link\b[^>]*\brel=[\"']?(?:stylesheet|preconnect|icon)\b[^>]*\bhref=[\"']?(?:https?:)?//[^>]*>"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root and the Mermaid library that the tests use."""
    for page, source in ROOT_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, MERMAID_TARGET, abs_src_path=str(MERMAID_SOURCE)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: object) -> str:
    """Point links at pages of the site; a link to another file of the repository becomes text."""
    uri = page.file.src_uri
    folder = str(Path(ROOT_PAGES.get(uri, f"docs/{uri}")).parent)

    def rewrite(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        path = normpath(f"{folder}/{target}")
        path = SITE_PATHS.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(path) is None:
            return text
        return f"[{text}]({relpath(path, start=str(Path(uri).parent))}{anchor})"

    return LINK.sub(rewrite, markdown)


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Load Mermaid where a page has a diagram, and refuse pages that are incomplete or remote."""
    uri = page.file.src_uri
    if 'class="mermaid"' in output:
        source = relpath(MERMAID_TARGET, start=str(Path(uri).parent))
        output = output.replace("</head>", f'<script src="{source}"></script></head>', 1)
    if remote := REMOTE.search(output):
        raise PluginError(f"{uri} would load a file from another host: {remote[0]}")
    if module := API_PAGES.get(uri):
        # A public module has a page of its own.
        names = {name for name in public_names(module) if f"api/{name}.md" not in OTHER_API_PAGES}
        missing = sorted(name for name in names if f'id="{module}.{name}"' not in output)
        if missing:
            raise PluginError(f"{uri} does not describe {', '.join(missing)}")
    return output


def public_names(module: str) -> list[str]:
    """Read `__all__` of a module without importing it."""
    source = ROOT / "src" / module.replace(".", "/") / "__init__.py"
    for statement in ast.parse(source.read_text(encoding="utf-8")).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return [name for name in ast.literal_eval(value) if not name.startswith("_")]
            case _:
                pass
    raise PluginError(f"{module} has no literal __all__")
