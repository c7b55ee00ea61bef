"""Rules for the files of the repository."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "all.lock"
DOCS_LOCK = ROOT / "requirements" / "docs.lock"
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
NPM_LOCKS = [ROOT / folder / "package-lock.json" for folder in ("web", "tests/mermaid")]

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


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def project() -> dict[str, Any]:
    return pyproject()["project"]


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


def test_repository_walk_finds_sources_and_skips_environments():
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


@pytest.mark.parametrize(
    "lock", [*LOCKS, *NPM_LOCKS], ids=lambda path: path.parent.name + path.stem
)
def test_lock_names_no_address(lock: Path):
    text = lock.read_text(encoding="utf-8")
    assert ("://" in text, '"resolved"' in text) == (False, False)


@pytest.mark.parametrize("lock", NPM_LOCKS, ids=lambda path: path.parent.name)
def test_every_library_of_a_page_has_an_exact_version_and_a_hash(lock: Path):
    packages: dict[str, Any] = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    own = packages.pop("")
    wanted = {**own.get("dependencies", {}), **own.get("devDependencies", {})}
    assert [name for name, version in wanted.items() if not version[0].isdigit()] == []
    loose = [
        name
        for name, each in packages.items()
        if not each.get("integrity", "").startswith("sha512-")
    ]
    assert loose == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
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
    assert unmet_requirements(wanted, LOCK) == []
    assert unmet_requirements(pyproject()["dependency-groups"]["docs"], DOCS_LOCK) == []


def unmet_requirements(wanted: list[str], lock: Path) -> list[str]:
    versions = {name: rest.partition(" ")[0] for name, rest in locked(lock).items()}
    return [
        line
        for line in wanted
        if (need := Requirement(line)).name != project()["name"]
        and versions.get(canonicalize_name(need.name), "0") not in need.specifier
    ]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_command_a_page_names_exists(page: str):
    named = set(
        re.findall(r"\bmake ([a-z]+)(?:`| {2,})", (ROOT / page).read_text(encoding="utf-8"))
    )
    assert named
    assert named <= make_targets()


def test_contributing_names_every_make_command():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `make ([a-z]+)` \|", page, re.MULTILINE)) == make_targets() - {
        "help"
    }


def test_contributing_lists_the_layers_that_are_enforced():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [listed] = re.findall(r"## Layers\n.*?```\n(.*?)```", page, re.DOTALL)
    [layers, *_] = pyproject()["tool"]["importlinter"]["contracts"]
    assert listed.splitlines() == [layer for layer in layers["layers"] if layer != "__main__"]


def test_readme_names_the_two_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make run" in readme
    assert "make test" in readme


@pytest.mark.parametrize("script", [".ci/run", "scripts/lock", "scripts/second-python"])
def test_scripts_are_executable(script: str):
    assert os.access(ROOT / script, os.X_OK)


def run_ci(folder: Path, programs: dict[str, str], path: str) -> subprocess.CompletedProcess[str]:
    """Run the real script in a copy of the repository where these programs are all there is."""
    for place in (".ci", "scripts"):
        (folder / place).mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    plain = {name: value for name, value in os.environ.items() if name != "WEFT_CHROMIUM"}
    return subprocess.run(
        [folder / ".ci" / "run"],
        env={**plain, "PATH": f"{folder}{os.pathsep}{path}"},
        capture_output=True,
        text=True,
        check=False,
    )


def ci_programs(folder: Path, failing: str = "") -> dict[str, str]:
    """Return commands that only note their names, and fail if they are named."""
    return {
        name: f'echo "{part}" >> "{folder}/calls"\n[ "{part}" != "{failing}" ]'
        for name, part in [("make", "$1 $WEFT_NO_SKIP"), ("scripts/second-python", "second-python")]
    }


@pytest.mark.parametrize("failing", ["", "check 1", "test 1", "docs 1", "second-python"])
def test_ci_runs_every_part_and_fails_when_one_does(failing: str, tmp_path: Path):
    programs = {**ci_programs(tmp_path, failing), "chromium": ""}
    result = run_ci(tmp_path, programs, os.environ["PATH"])
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["check 1", "test 1", "docs 1", "second-python"]
    assert (result.returncode != 0) == (failing != "")


@pytest.mark.parametrize("code", [0, 1])
def test_ci_installs_chromium_where_it_is_missing(tmp_path: Path, code: int):
    apt = f'echo "apt-get $*" >> "{tmp_path}/calls"; exit {code}'
    programs = {**ci_programs(tmp_path), "apt-get": apt, "sudo": 'exec "$@"'}
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("bash", "dirname", "env", "id", "sh"):
        (tools / tool).symlink_to(shutil.which(tool) or tool)
    result = run_ci(tmp_path, programs, str(tools))
    calls = (tmp_path / "calls").read_text().splitlines()
    installs = ["apt-get update -qq"]
    installs += ["apt-get install -qq -y --no-install-recommends chromium"] * (code == 0)
    assert calls == [*installs, "check 1", "test 1", "docs 1", "second-python"]
    assert result.returncode == code, result.stderr


def run_second_python(folder: Path, candidates: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the real script where only these Pythons exist and every other program notes its name."""
    for place in ("scripts", ".venv/bin", "bin", "home"):
        (folder / place).mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "second-python", folder / "scripts")
    programs = {f"bin/{name}": text for name, text in candidates.items()}
    programs |= {".venv/bin/python": "echo 3.11"}
    programs |= {f".venv/bin/{name}": f'echo {name} "$@"' for name in ("pyright", "uv")}
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    for tool in ("bash", "dirname", "mktemp", "rm", "sh"):
        (folder / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    return subprocess.run(
        [folder / "scripts" / "second-python"],
        env={"PATH": str(folder / "bin"), "HOME": str(folder / "home"), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_missing_second_python_is_skipped_with_one_line(tmp_path: Path):
    shim = "echo 'pyenv: python3.13: command not found' >&2; exit 127"
    result = run_second_python(tmp_path, {"python3.13": shim, "python3.11": "echo 3.11"})
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "Skipped: no usable Python besides 3.11 is installed.\n"


def test_second_python_is_type_checked_and_tested(tmp_path: Path):
    fails = 'echo "$@"; exit 5'
    result = run_second_python(tmp_path, {"python3.12": "echo 3.12", "python": fails})
    assert "pyright --pythonversion 3.12\n" in result.stdout
    assert "-m pytest -q" in result.stdout
    assert result.returncode == 5, result.stderr


def test_install_ends_with_the_next_step():
    """The environment counts as up to date (-o), so that only the last line of the recipe runs."""
    result = subprocess.run(
        ["make", "--silent", "-o", ".venv/.installed", "install"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Next: make run" in result.stdout


def test_decisions_are_numbered_without_gaps():
    names = sorted(path.name for path in (ROOT / "docs" / "decisions").iterdir())
    assert [name for name in names if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name)] == []
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    assert names


def test_only_one_module_reads_the_environment():
    readers = [
        path.relative_to(ROOT / "src").as_posix()
        for path in sorted((ROOT / "src").rglob("*.py"))
        if re.search(r"\bos\.(environ|getenv)\b", path.read_text(encoding="utf-8"))
    ]
    assert readers == ["weft/environment.py"]
