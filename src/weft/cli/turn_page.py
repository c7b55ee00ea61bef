"""One turn as a page: the exact prompt in slices, what was left out; and two turns side by side."""

import json

from weft.cli.inspect_page import add_turn
from weft.cli.page import Page
from weft.cli.streams import Streams
from weft.cli.wording import counted
from weft.context.segment import LeftOut, Segment
from weft.inspect.comparison import TurnComparison
from weft.inspect.turn import Prompt, TurnInspection


def turn_page(told: TurnInspection, streams: Streams) -> str:
    """Return the page of a turn."""
    page = Page(streams)
    page.title(f"run {told.run}, turn {told.record.number}: {told.record.agent}")
    add_turn(page, told.record)
    if told.values:
        page.title("Variables when the turn began")
        for name, value in told.values.items():
            page.line(f"{name} = {value}")
    if told.sets:
        page.title("Set in this turn")
        for it in told.sets:
            page.line(f"{it.name} = {it.shown}  (by {it.writer}, event {it.seq})")
    for prompt in told.prompts:
        _prompt(page, prompt)
    return str(page)


def comparison_page(told: TurnComparison, streams: Streams) -> str:
    """Return what differs between two turns, as a page."""
    page = Page(streams)
    page.title(f"{told.before} compared with {told.after}")
    if told.values:
        page.title("Variables")
        for value in told.values:
            old = "(none)" if value.before is None else value.before
            page.line(f"{value.name}: {old} -> {'(none)' if value.after is None else value.after}")
    for part in told.slices:
        page.title(f"{part.kind} {part.origin}: {part.change}".replace(" :", ":"))
        page.text("\n".join(part.diff[2:]), 2)
    for title, items in (
        ("Left out only in the second", told.newly_left_out),
        ("Left out only in the first", told.no_longer_left_out),
    ):
        if items:
            page.title(title)
            page.lines(left_out_text(it) for it in items)
    if not (told.values or told.slices or told.newly_left_out or told.no_longer_left_out):
        page.line("both agents were sent the same")
    return str(page)


def left_out_text(item: LeftOut) -> str:
    """Say what was left out and why."""
    rest = {k: v for k, v in item.items() if k not in ("kind", "origin", "reason")}
    what = f" {json.dumps(rest, ensure_ascii=False)}" if rest else ""
    return f"{item.get('kind')} {item.get('origin')}{what}: {item.get('reason')}"


def _prompt(page: Page, prompt: Prompt) -> None:
    page.title(f"Call {prompt.call}: sent about {counted(prompt.tokens, 'token')}")
    for part in prompt.slices:
        page.line(_slice(part), style="cyan")
        page.text(part.text)
    page.title(f"Left out of call {prompt.call}")
    page.lines(left_out_text(it) for it in prompt.left_out)
    if not prompt.left_out:
        page.line("nothing")
    if prompt.same:
        page.line(f"digest {prompt.recorded[:12]} matches: these are the bytes that were sent")
    else:
        page.line(f"digest {prompt.digest[:12]} is not {prompt.recorded[:12]}: {prompt.note}")


def _slice(part: Segment) -> str:
    who = f" {part.role}" if part.role else ""
    return f"[{part.kind} {part.origin}]{who}, {counted(part.tokens, 'token')}"
