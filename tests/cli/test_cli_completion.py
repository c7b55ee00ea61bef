"""Shell completion: scripts that shells accept, and what they offer."""

import subprocess

import pytest

from weft.cli.verbs import VERB_NAMES


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_every_script_offers_all_verbs_and_options(weft, shell_name: str):
    result = weft("completion", shell_name)
    assert result.code == 0
    assert all(verb in result.out for verb in VERB_NAMES)
    assert weft("completion", shell_name, "--json").data["script"] + "\n" == result.out
    for option in ("strict", "dry-run", "pattern", "workspace"):
        assert option in result.out


def test_bash_accepts_its_script(weft, tmp_path):
    script = tmp_path / "script"
    script.write_text(weft("completion", "bash").out)
    subprocess.run(["bash", "-n", str(script)], check=True)


def complete_in_bash(script: str, line: str) -> list[str]:
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f"{script}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n"
        f"COMP_LINE='{line}'\nCOMP_POINT={len(line)}\n_weft\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    )
    answer = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    return answer.stdout.split()


def test_bash_completes_verbs_options_and_values(weft):
    script = weft("completion", "bash").out
    assert complete_in_bash(script, "weft mig") == ["migrate"]
    assert "--dry-run" in complete_in_bash(script, "weft migrate --d")
    assert set(complete_in_bash(script, "weft check --format s")) == {"sarif"}


def offered(weft, *words: str) -> set[str]:
    lines = weft("__complete", *words).out.splitlines()
    return {line.split("\t")[0] for line in lines if line and line[0] != "\x1f"}


def test_packages_are_offered_by_name(weft, workspace, make_package):
    make_package(workspace / "workflows" / "Returns")
    for verb in ("diagram", "export", "check", "migrate"):
        assert offered(weft, verb, "") >= {"Support", "Returns"}


def test_outside_of_a_workspace_no_package_is_offered(weft, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert offered(weft, "diagram", "") == set()


def test_codes_are_offered(weft):
    assert offered(weft, "explain", "") >= {"SCHEMA", "SCHEMA001", "CLI006"}
