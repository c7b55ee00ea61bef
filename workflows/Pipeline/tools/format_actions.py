"""Writes action items as a table."""


def format_actions(owners: list[str], tasks: list[str], due: list[str]) -> str:
    """Return a Markdown table, one row for each action; the lists run in parallel."""
    rows = zip(owners, tasks, due, strict=True)
    lines = ["| owner | action | due |", "|---|---|---|"]
    lines += [f"| {owner} | {task} | {date} |" for owner, task, date in rows]
    return "\n".join(lines)
