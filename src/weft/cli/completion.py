"""Shell completion: short scripts that ask `weft __complete WORDS`, and the answers.

A person waits for the answer after pressing Tab: nothing here loads the commands, the command-line
library or the models of packages. Options and their values are in `completion.json`, which
`make generate` writes from the commands.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol

from weft.cli.codes import CODES, FAMILIES
from weft.cli.commands.table import COMMANDS, Command, read_completion_data
from weft.cli.settings import PACKAGES, nearest_workspace

#: The scripts by shell. Each passes the words up to the cursor, and reads lines of a value, a tab
#: and a description.
SCRIPTS: Final = {
    "bash": """\
_weft() {
  local value rest
  COMPREPLY=()
  while IFS=$'\\t' read -r value rest; do
    [[ -n $value ]] && COMPREPLY+=("$(printf '%q' "$value")")
  done < <(weft __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _weft weft""",
    "zsh": """\
#compdef weft
_weft() {
  local line
  local -a values
  for line in "${(@f)$(weft __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && values+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
  done
  if (( $#values )); then _describe -V weft values; else _files; fi
}
compdef _weft weft""",
    "fish": """\
function __weft
  set -l words (commandline -opc)[2..-1] (commandline -ct)
  set -l found (weft __complete $words 2>/dev/null | string match -v '')
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c weft -f -a '(__weft)'""",
    "powershell": """\
Register-ArgumentCompleter -Native -CommandName weft -ScriptBlock {
  param($word, $ast, $position)
  $words = @($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
  if ($word -eq '') { $words += '""' }
  weft __complete @words 2>$null | Where-Object { $_ } | ForEach-Object {
    $value, $text = $_ -split "`t", 2
    if (-not $text) { $text = $value }
    [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $text)
  }
}""",
}

#: The kinds of files of `weft schema`, written out because importing them loads every model.
SCHEMAS: Final = (
    "orchestrator",
    "agents",
    "context_variables",
    "handoffs",
    "tools",
    "hooks",
    "structured_outputs",
    "flow",
    "board",
    "pack",
    "action_plan",
    "form",
    "scenario",
)


class Cursor(Protocol):
    """The words before the cursor, as a completer needs them."""

    @property
    def incomplete(self) -> str:
        """The word at the cursor."""
        ...

    def get(self, name: str) -> Any:  # noqa: ANN401 - the library's own type has `raw` as well
        """Return the value of another option, as an object with `raw`."""
        ...


def package_names(cursor: Cursor) -> dict[str, str]:
    """Return the packages of the workspace by name, without reading them."""
    given = cursor.get("--workspace")
    workspace = Path(given.raw) if given and given.raw else nearest_workspace(Path.cwd())
    folder = workspace / PACKAGES
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name: "" for path in found if path.name[0] != "." and path.is_dir()}


def codes(cursor: Cursor) -> dict[str, str]:  # noqa: ARG001 - the signature of a completer
    """Return every code with its title, and the families."""
    titles = {entry.code: entry.title for entry in CODES.values()}
    return {**dict.fromkeys(FAMILIES, "family"), **titles}


def code_lists(cursor: Cursor) -> dict[str, str]:
    """Return codes that continue a list separated by commas."""
    before, comma, _ = cursor.incomplete.rpartition(",")
    return {f"{before}{comma}{code}": title for code, title in codes(cursor).items()}


def patterns(cursor: Cursor) -> dict[str, str]:  # noqa: ARG001 - the signature of a completer
    """Return the patterns by number and by name."""
    # Deferred: the other candidates do not need it.
    from weft.spec.patterns import PATTERNS  # noqa: PLC0415

    numbers = {str(pattern.id): pattern.title for pattern in PATTERNS}
    return {**numbers, **{pattern.name: pattern.summary for pattern in PATTERNS}, "blank": ""}


def schemas(cursor: Cursor) -> dict[str, str]:  # noqa: ARG001 - the signature of a completer
    """Return the kinds of files that have a schema."""
    return dict.fromkeys(SCHEMAS, "")


#: Completers by name, as `completion.json` refers to them.
COMPLETERS: Final[dict[str, Callable[[Cursor], dict[str, str]]]] = {
    completer.__name__: completer
    for completer in (package_names, codes, code_lists, patterns, schemas)
}


@dataclass(frozen=True)
class _Given:
    raw: str


@dataclass(frozen=True)
class _Line:
    """The words before the cursor, with options and values apart, and the word at the cursor."""

    before: tuple[str, ...]
    incomplete: str

    def get(self, name: str) -> _Given | None:
        """Return the last value of an option."""
        pairs = dict(zip(self.before, self.before[1:], strict=False))
        return _Given(pairs[name]) if name in pairs else None

    def commands(self) -> Iterator[str]:
        """Yield the words that may be commands: not the value of --workspace."""
        for previous, word in pairwise(("", *self.before)):
            if previous != "--workspace":
                yield word


def answer(words: Sequence[str]) -> str:
    """Return the candidates for the last word, one per line, each with a tab and a description."""
    line = _read(words)
    offered = _candidates(line)
    return "\n".join(
        _flat(value) + (f"\t{_flat(text)}" if text else "")
        for value, text in offered.items()
        if value.startswith(line.incomplete)
    )


def _candidates(line: _Line) -> dict[str, str]:
    command, path = _command(line)
    data = read_completion_data()
    options: dict[str, Any] = {**data[""], **data.get(path, {})}
    last = line.before[-1] if line.before else ""
    if last.startswith("-") and options.get(last, {}).get("takes_value"):
        return _values(options[last], line)
    if line.incomplete.startswith("-"):
        names = (name for name in options if name.startswith("-"))
        return {name: options[name]["help"] for name in names}
    if command is None or command.parts:
        parts = COMMANDS if command is None else command.parts
        paths = {part: f"{path} {part.name}".lstrip() for part in parts}
        return {part.name: part.summary(paths[part]).partition(".")[0] for part in parts}
    return _values(options.get("", {}), line)


def _values(option: dict[str, Any], line: _Line) -> dict[str, str]:
    """Return the values of an option, or of the arguments of a command."""
    completer = COMPLETERS.get(option.get("completer", ""))
    return completer(line) if completer else dict.fromkeys(option.get("choices", ()), "")


def _command(line: _Line) -> tuple[Command | None, str]:
    """Return the command or subcommand before the cursor, and its words."""
    found: Command | None = None
    path: list[str] = []
    for word in line.commands():
        parts = COMMANDS if found is None else found.parts
        command = next((part for part in parts if part.name == word), None)
        if command is not None:
            found = command
            path.append(word)
    return found, " ".join(path)


def _read(words: Sequence[str]) -> _Line:
    """Split `--option=value`, which some shells pass as one word and others as three."""
    parts: list[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        parts += [option, value] if equals and option.startswith("--") else [word]
    *before, incomplete = parts or [""]
    if incomplete in ("=", '""'):
        incomplete = ""
    return _Line(tuple(word for word in before if word != "="), incomplete)


def _flat(text: str) -> str:
    """Keep a value on one line and in one column."""
    return re.sub("[\t\n\r]", " ", text)
