"""Family UI, in code: what `use_ui_tool` shows is declared."""

from collections.abc import Iterator

from weft.check.code.facts import code_of, reached
from weft.check.code.modules import UI_CALL, Module
from weft.check.rule import rule
from weft.check.rules.declared import all_entries
from weft.check.rules.tools import functions_meant
from weft.check.spelling import did_you_mean
from weft.check.subject import Hit, Subject
from weft.spec.tools import UiTool


@rule("UI007", "tools", "lifecycle_tools", "hooks", "code")
def question_has_tool(subject: Subject) -> Iterator[Hit]:
    known = [tool.function for tool in subject.spec.tools if isinstance(tool, UiTool)]
    right = {None, *known, *subject.once(functions_meant)}
    modules = code_of(subject).modules
    used = {
        (definition.file, asked): None
        for entry in all_entries(subject)
        for definition in reached(subject, entry.file or "", entry.declared.function)
        for asked in sorted(definition.asked, key=str)
    }
    for file, (name, spot, root) in used:
        if name not in right and _is_outside(modules[file], root):
            yield Hit(
                (),
                f'{UI_CALL} shows "{name}", which is no UI tool of the package',
                hint=did_you_mean(str(name), known) or (_remedy(subject, str(name)),),
                place=modules[file].place(spot),
            )


def _remedy(subject: Subject, name: str) -> str:
    if name in subject.tools:
        return f"declare {name} as UI_Tool, or name the one that is meant"
    return "declare it in tools.json as UI_Tool, or name one that is declared"


def _is_outside(module: Module, name: str) -> bool:
    """Tell whether a name is imported from outside: a package may have a function of that name."""
    return name in module.origins and not module.origins[name] and name not in module.functions
