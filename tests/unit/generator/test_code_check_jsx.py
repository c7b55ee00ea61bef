"""Components that a model wrote: what passes, and what is refused. None of it is run."""

import sys

import pytest

from weft.generator.code_check.jsx_code import MAX_BYTES, jsx_faults

GOOD = """import { useState } from "react";
import { Button, Card } from "@kit/ui";

const CHOICES = ["accept", "reject"];

function Row({ label, children }) {
  return <p><b>{label}</b> {children}</p>;
}

export default function Approval({ payload, onResponse }) {
  const { title = "?", items = [] } = payload ?? {};
  const [decision, setDecision] = useState("accept");
  const [comment, setComment] = useState("");
  const send = (event) => {
    event.preventDefault();
    for (const it of items) String(it);
    onResponse({ decision, comment: comment.trim() });
  };
  return (
    <Card title={title}>
      {Object.entries(payload).length}
      {items.map((item, at) => <Row key={at} label={at + 1}>{String(item)}</Row>)}
      <form onSubmit={send}>
        <select value={decision} onChange={(event) => setDecision(event.target.value)}>
          {CHOICES.map((it) => <option key={it} value={it}>{it}</option>)}
        </select>
        <textarea value={comment} onChange={({ target }) => setComment(target.value)} />
        <Button type="submit" disabled={!decision}>Send</Button>
      </form>
    </Card>
  );
}
"""
KEYS = ("decision", "comment")


def faults(source: str) -> list[str]:
    return jsx_faults(source, "Approval", KEYS)


def inside(statement: str) -> str:
    return GOOD.replace("    event.preventDefault();", f"    {statement}")


def drawn(markup: str) -> str:
    return GOOD.replace("<form onSubmit={send}>", f"{markup}<form onSubmit={{send}}>")


def test_a_good_component_passes():
    assert faults(GOOD) == []


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("export default function (", "not valid JSX at line"),
        ("x" * (MAX_BYTES + 1), "longer than"),
        (GOOD.replace("comment.trim()", "(" * 30_000 + "1" + ")" * 30_000), "nested too deeply"),
        (GOOD.replace("comment.trim()", "!" * 60_000 + "1"), "nested too deeply"),
        ("", "default export is not Approval"),
        (GOOD + "// \u202e", "invisible sign"),
        (GOOD.replace("function Approval", "function Other"), "default export is not Approval"),
        (GOOD + "export const x = 1;", "exports more"),
        (GOOD + "export default 1;", "default export is not Approval"),
        (GOOD + 'export * from "react";', "exports more"),
        (GOOD.replace("@kit/ui", "axios"), "imports axios"),
        (GOOD + "send();", "runs when the file is loaded"),
        (GOOD + "const x = String(1);", "runs when the file is loaded"),
        (GOOD.replace("onResponse({ decision, comment: comment.trim() })", "1"), "never calls"),
        (
            GOOD.replace("comment: comment.trim()", "note: comment"),
            "must call onResponse({...}) with exactly: decision, comment",
        ),
        (GOOD.replace("{ decision, comment: comment.trim() }", "{ ...payload }"), "with exactly"),
        (
            GOOD.replace("{ decision, comment: comment.trim() }", "payload"),
            "must call onResponse({...}) with exactly: decision, comment",
        ),
        (GOOD.replace("onSubmit={send}", "onSubmit={onResponse}"), "passes onResponse on"),
    ],
)
def test_unknown_component_is_refused(source, why):
    assert why in "; ".join(faults(source))


def test_optional_key_can_be_left_out():
    source = GOOD.replace("comment: comment.trim()", "")
    assert jsx_faults(source, "Approval", KEYS, ["decision"]) == []
    assert jsx_faults(source, "Approval", KEYS, KEYS)


@pytest.mark.parametrize(
    "statement",
    [
        "eval(title);",
        "new Function(title)();",
        'fetch("/x");',
        "new XMLHttpRequest();",
        'new WebSocket("x");',
        'import("x");',
        'require("x");',
        "document.title = title;",
        "window.location = title;",
        "localStorage.clear();",
        "globalThis.x = 1;",
        "setTimeout(title, 1);",
        "open(title);",
        "alert(title);",
        "send.constructor(title)();",
        'send["constructor"](title)();',
        'send["con" + "structor"](title)();',
        "send[title]();",
        "const { constructor: c } = send;",
        'const { "constructor": c } = send;',
        "const { [title]: c } = send;",
        "send.c\\u006fnstructor(title)();",
        "event.target.innerHTML = title;",
        "event.view.x();",
        "Object.getPrototypeOf(send);",
        "JSON.parse = send;",
        "[JSON.parse] = [send];",
        "delete JSON.parse;",
        "for (JSON.parse of [send]) {}",
        "({ a: JSON.parse } = { a: send });",
        "Object.assign(JSON, { parse: send });",
        "const o = Object;",
        "while (true) {}",
    ],
)
def test_path_that_leads_out_is_refused(statement):
    assert faults(inside(statement)), statement


@pytest.mark.parametrize(
    "markup",
    [
        "<div dangerouslySetInnerHTML={{ __html: title }} />",
        "<div {...payload} />",
        "<script>{title}</script>",
        "<iframe title={title} />",
        "<img src={title} />",
        "<a href={title}>x</a>",
        "<button formAction={title} />",
        '<p style={{ backgroundImage: "url(x)" }} />',
        "<style>{title}</style>",
        '<object data="x" />',
    ],
)
def test_hostile_markup_is_refused(markup):
    assert faults(drawn(markup)), markup


def test_without_the_parser_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    assert faults(GOOD) == ['it cannot be parsed here: pip install "weft-agents[generator]"']
