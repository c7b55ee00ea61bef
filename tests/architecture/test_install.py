"""The install line of the README works in a fresh environment."""

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from pathlib import Path
from urllib.request import urlopen

import pytest
from packaging.requirements import Requirement

import weft

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

#: What keeps the line away from the network: what it would fetch is here already.
OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The programs of a fresh environment in which the line of the front page was typed.

    The libraries of this one are within reach there, but not Weft: a path in a .pth file is
    searched, the .pth files that lie there are not read.
    """
    (line,) = re.findall(r"^pip (install .+)$", README, re.MULTILINE)
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, with_pip=True)
    programs = home / "bin"
    libraries = sysconfig.get_path("purelib", vars={"base": str(home)})
    Path(libraries, "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    command = [programs / "python", "-m", "pip", *shlex.split(line), *OFFLINE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return programs


def output(program: Path, *words: str, cwd: Path) -> str:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [program, *words], cwd=cwd, env=plain, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_install_line_of_the_readme_installs_the_command(installed, tmp_path):
    assert output(installed / "weft", "--version", cwd=tmp_path) == f"weft {weft.__version__}\n"
    assert "weft check" in output(installed / "weft", "--help", cwd=tmp_path)
    where = "import weft; print(weft.__file__)"
    found = Path(output(installed / "python", "-c", where, cwd=tmp_path).strip())
    assert found.is_relative_to(installed.parent)


def test_installation_contains_packages_and_schemas(installed, tmp_path):
    output(installed / "weft", "init", "shop", cwd=tmp_path)
    assert "No findings" in output(installed / "weft", "check", "shop", cwd=tmp_path)
    assert (tmp_path / "shop" / "schemas" / "agents.schema.json").is_file()


def test_installation_serves_the_page_without_node(installed, tmp_path):
    index = ROOT / "src" / "weft" / "page" / "index.html"
    assert index.is_file(), "the page is not built; run make web"
    output(installed / "weft", "init", "shop", cwd=tmp_path)
    words = ["serve", "--workspace", "shop", "--port", "0", "--no-open", "--json"]
    with subprocess.Popen(
        [installed / "weft", *words],
        cwd=tmp_path,
        env={"PATH": str(installed)},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            url = json.loads(server.stdout.readline())["ready"]["url"]
            content = read(f"{url}/runs")
            assert content == index.read_bytes()
            named = re.findall(r'(?:src|href)="(/[^"]+)"', content.decode())
            assert any(path.startswith("/assets/") for path in named)
            assert all(read(url + path) for path in [*named, "/frame"])
        finally:
            server.terminate()


def read(url: str) -> bytes:
    with urlopen(url, timeout=20) as answer:
        return answer.read()


def test_source_distribution_carries_the_page(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"src/weft/page/index.html", "web/package.json", "web/src/main.tsx"} <= names
    assert not any(name.startswith("web/node_modules/") for name in names)


def test_distribution_is_named_weft_agents(installed, tmp_path):
    named = "from importlib.metadata import version; print(version('weft-agents'))"
    assert output(installed / "python", "-c", named, cwd=tmp_path).strip() == weft.__version__
    assert PROJECT["name"] == "weft-agents"
    assert PROJECT["version"] == weft.__version__
    assert PROJECT["scripts"] == {"weft": "weft.cli.app:main"}


def test_extras_refer_to_this_distribution():
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    wanted = [Requirement(line) for lines in extras.values() for line in lines]
    assert "weft" not in {requirement.name for requirement in wanted}
    own = [requirement for requirement in wanted if requirement.name == PROJECT["name"]]
    assert own
    assert all(requirement.extras <= extras.keys() for requirement in own)


@pytest.mark.parametrize("folder", ["src/weft/adapters", "src/weft/app", "docs"])
def test_no_hint_names_the_distribution_of_another_project(folder):
    """What `pip install weft` would fetch is not this."""
    wrong = re.compile(r"pip install [^\n]*?\bweft(?!-agents)\b|\bweft\[(?=models|watch)")
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md"}]
    named = {str(file.relative_to(ROOT)) for file in files if wrong.search(file.read_text("utf-8"))}
    assert named == set()
