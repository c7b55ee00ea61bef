"""The habits of the repository, as rules that fail."""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "all.lock"
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))

#: Written so that no pattern matches its own text here.
REGISTRY = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|yarnpkg\.com|anaconda\.org"
    r"|--(?:extra-)?index[-]url|--find[-]links"
)
MACHINE_PATH = re.compile(r"(?<![\w.~])/(?:home|Users|root|work|opt)[/]\w|\b[A-Z]:[\\]Users\b")
UNFINISHED = re.compile(r"\b(?:TOD[O]|FIXM[E])\b")


def is_ignored(path: Path, patterns: list[str]) -> bool:
    """Tell whether .gitignore leaves a path out: by name, or from the root if it has a slash."""
    place = f"/{path.relative_to(ROOT).as_posix()}"
    return any(
        fnmatch(place, f"/{pattern.lstrip('/')}") if "/" in pattern else fnmatch(path.name, pattern)
        for pattern in patterns
    )


def repository_files() -> Iterator[Path]:
    """Yield every file git would keep, tracked or not yet.

    The folder is walked, since a copy of the sources without its history must pass as well.
    """
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    patterns = [".git", *(line.rstrip("/") for line in lines if line and line[0] != "#")]
    for folder, folders, files in os.walk(ROOT):
        here = Path(folder)
        folders[:] = [name for name in folders if not is_ignored(here / name, patterns)]
        yield from (here / name for name in files if not is_ignored(here / name, patterns))


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    """Name the place of every line in the repository that a pattern is found in."""
    return [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in repository_files()
        for number, line in enumerate(
            file.read_bytes().decode("utf-8", errors="replace").split("\n"), start=1
        )
        if pattern.search(line)
    ]


def locked(lock: Path = LOCK) -> dict[str, str]:
    """Return what follows each package name in a lock: version, marker and hashes."""
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    entries = (line.partition("==") for line in text.splitlines() if line.strip())
    return {canonicalize_name(name): rest for name, _, rest in entries}


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+):.*## \S", makefile, flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (REGISTRY, "files.python" + "hosted.org/packages"),
        (REGISTRY, "--index" + "-url https://example.org"),
        (MACHINE_PATH, "see /ho" + "me/ada/weft"),
        (MACHINE_PATH, "'/wo" + "rk/main'"),
        (UNFINISHED, "# TO" + "DO later"),
    ],
)
def test_patterns_find_what_they_are_for(pattern: re.Pattern[str], line: str):
    assert pattern.search(line)


def test_patterns_leave_ordinary_text_alone():
    ordinary = "https://example.org/home/page ../work/x src/opt/y docs/homework"
    assert not MACHINE_PATH.search(ordinary)


def test_the_walk_sees_the_sources_and_not_the_environment():
    seen = {file.relative_to(ROOT).as_posix() for file in repository_files()}
    assert {"pyproject.toml", ".ci/run", "src/weft/ids.py"} <= seen
    assert not any(name.startswith((".venv/", ".git/")) for name in seen)


@pytest.mark.parametrize(
    "pattern", [REGISTRY, MACHINE_PATH, UNFINISHED], ids=["registry", "machine path", "unfinished"]
)
def test_no_file_holds_a_forbidden_line(pattern: re.Pattern[str]):
    assert lines_matching(pattern) == []


def test_no_source_file_is_longer_than_500_lines():
    lengths = {
        str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines())
        for file in (ROOT / "src").rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > 500} == {}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda it: it.stem)
def test_lock_names_no_address(lock: Path):
    assert "://" not in lock.read_text(encoding="utf-8")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda it: it.stem)
def test_every_locked_package_has_an_exact_version_and_hashes(lock: Path):
    loose = [
        name
        for name, rest in locked(lock).items()
        if not re.match(r"[\w.+!]+\s.*--hash=sha256:[0-9a-f]{64}(?:\s|\Z)", rest)
    ]
    assert loose == []


def test_lock_satisfies_pyproject():
    """A dependency changed without `scripts/lock` is noticed here, without the network."""
    extras: dict[str, list[str]] = project()["optional-dependencies"]
    wanted = [*project()["dependencies"], *(line for extra in extras.values() for line in extra)]
    versions = {name: rest.partition(" ")[0] for name, rest in locked().items()}
    unmet = [
        line
        for line in wanted
        if (need := Requirement(line)).name != project()["name"]
        and versions.get(canonicalize_name(need.name), "0") not in need.specifier
    ]
    assert unmet == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_command_a_page_names_exists(page: str):
    named = set(
        re.findall(r"\bmake ([a-z]+)(?:`| {2,})", (ROOT / page).read_text(encoding="utf-8"))
    )
    assert named
    assert named <= make_targets()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_link_of_a_page_leads_to_a_file(page: str):
    targets = re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_readme_names_the_two_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make run" in readme
    assert "make test" in readme


@pytest.mark.parametrize("script", [".ci/run", "scripts/lock"])
def test_scripts_are_executable(script: str):
    assert os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize("failing", ["", "check", "test"])
def test_ci_runs_both_parts_and_fails_when_either_does(failing: str, tmp_path: Path):
    fake = tmp_path / "make"
    fake.write_text(f'#!/bin/sh\necho "$1" >> "{tmp_path}/calls"\n[ "$1" != "{failing}" ]\n')
    fake.chmod(0o755)
    result = subprocess.run(
        [ROOT / ".ci" / "run"],
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        check=False,
    )
    assert (tmp_path / "calls").read_text().split() == ["check", "test"]
    assert (result.returncode != 0) == (failing != "")


def test_decisions_are_numbered_without_gaps():
    names = sorted(path.name for path in (ROOT / "docs" / "decisions").iterdir())
    assert [name for name in names if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name)] == []
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    assert names


def test_the_environment_is_read_in_one_place():
    readers = [
        path.relative_to(ROOT / "src").as_posix()
        for path in sorted((ROOT / "src").rglob("*.py"))
        if re.search(r"\bos\.(environ|getenv)\b", path.read_text(encoding="utf-8"))
    ]
    assert readers == ["weft/environment.py"]
