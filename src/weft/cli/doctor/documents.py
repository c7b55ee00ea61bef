"""What `weft doctor` finds where documents are kept."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from shlex import quote

from weft.app.documents import documents_file, open_documents
from weft.app.folders import LOCAL
from weft.cli.doctor import Diagnosis
from weft.cli.text import counted
from weft.errors import StoreError, UsageError


def documents_check(workspace: Path, settings: Mapping[str, str]) -> Diagnosis:
    """Look where documents are, and read some; no file is made only to look at it."""
    try:
        return _kept(documents_file(workspace, settings), workspace, settings)
    except UsageError as error:  # a wrong setting, or a library that is not installed
        return Diagnosis("fail", "documents", str(error), error.hint or "")


def _kept(file: Path | None, workspace: Path, settings: Mapping[str, str]) -> Diagnosis:
    if file is not None and not file.exists():
        return Diagnosis("ok", "documents", f"no document was kept in {file} so far")
    try:
        counts = asyncio.run(_read(workspace, settings))
    except StoreError as error:
        return Diagnosis("fail", "documents", str(error), _remedy(error, file))
    fact = f"{counted(sum(counts), 'document')} in {counted(len(counts), 'collection')}"
    return Diagnosis("ok", "documents", f"{file or _address(settings)}: {fact}")


async def _read(workspace: Path, settings: Mapping[str, str]) -> list[int]:
    """Return how many documents each collection has, after having read one of each."""
    store = await open_documents(workspace, settings)
    try:
        found = await store.collections(LOCAL)
        for collection, _ in found:
            await store.page(LOCAL, collection, limit=1)
        return [count for _, count in found]
    finally:
        await store.close()


def _remedy(error: StoreError, file: Path | None) -> str:
    if file is None:
        return "look at the address in WEFT_DOCUMENTS, and whether the server is up"
    if error.retryable:
        return "wait a moment, then look again: weft doctor"
    path = quote(str(file))
    return f"mv {path} {path}.damaged, or name another file in WEFT_DOCUMENTS"


def _address(settings: Mapping[str, str]) -> str:
    # Deferred: it needs a library that is not always installed; who comes here has it.
    from weft.adapters.documents.mongodb_values import shown_address  # noqa: PLC0415

    return shown_address(settings["WEFT_DOCUMENTS"])
