"""Which model answers for an agent, as it is shown to a person."""

from typing import Final

from weft.app.models import default_model_of
from weft.environment import read_environment
from weft.runtime.workflow import Workflow

#: What is to be known of replies that no model gives. They come whole: nobody waits for them.
_BADGED: Final = {
    "sample": "made-up replies",
    "designer": "stated rules, no language model",
    "you": "you type the replies",
    "replay": "replies of an earlier run",
}


def model_of(workflow: Workflow, agent: str, named: str | None) -> str:
    """Return the name of the model that answers for an agent; `named` is that of the run."""
    usual = read_environment().get("WEFT_MODEL") or default_model_of(workflow.spec)
    return named or workflow.models[agent] or usual


def is_badged(model: str) -> bool:
    """Tell whether the replies of a model carry a badge, since no model gives them."""
    return model.partition(":")[0] in _BADGED


def models_line(workflow: Workflow, named: str | None, *, begins: bool) -> str:
    """Name the models of a run in one line; one that begins may have others. Empty: it has none."""
    names = dict.fromkeys(model_of(workflow, agent, named) for agent in workflow.models)
    if not names:
        return ""
    notes = [note for kind, note in _BADGED.items() if any(_is_kind(it, kind) for it in names)]
    if notes and begins:
        notes.append("--model names another")
    line = f"model{'s' if len(names) > 1 else ''}: {', '.join(names)}"
    return f"{line} ({'; '.join(notes)})" if notes else line


def _is_kind(model: str, kind: str) -> bool:
    return model.partition(":")[0] == kind
