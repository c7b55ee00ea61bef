import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { javascript, json } from "@codemirror/legacy-modes/mode/javascript";
import { python } from "@codemirror/legacy-modes/mode/python";
import { yaml } from "@codemirror/legacy-modes/mode/yaml";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import type { Extension, Text } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, keymap, lineNumbers, WidgetType } from "@codemirror/view";
import type { DecorationSet } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useEffectEvent, useLayoutEffect, useRef } from "react";

import type { FindingAnswer } from "../protocol/api";

export interface CodeEditorProps {
  /** The ending of the file tells its language. */
  path: string;
  text: string;
  /** Without it, the text can only be read. */
  onChange?: (text: string) => void;
  onSave?: () => void;
  /** The findings of this file, shown below their lines. */
  findings: readonly FindingAnswer[];
  /** The line to begin at. */
  line?: number;
}

/** The text of a file. Loaded when it is used. */
export default function CodeEditor({ path, text, findings, line, ...events }: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView>(null);
  const isReadOnly = !events.onChange;
  const change = useEffectEvent((now: string) => events.onChange?.(now));
  const save = useEffectEvent(() => events.onSave?.());
  const first = useEffectEvent(() => text);

  useLayoutEffect(() => {
    const element = host.current as HTMLDivElement;
    // In a shadow root its styles are objects, not elements that our policy forbids.
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      doc: first(),
      extensions: [
        languageOf(path),
        lineNumbers(),
        history(),
        drawSelection(),
        bracketMatching(),
        shownFindings,
        EditorState.readOnly.of(isReadOnly),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": path, tabindex: "0" }),
        TYPE_OVER,
        EditorView.updateListener.of((update) => {
          if (update.docChanged) change(update.state.doc.toString());
        }),
        keymap.of([
          { key: "Mod-s", preventDefault: true, run: () => (save(), true) },
          ...defaultKeymap,
          ...historyKeymap,
        ]),
        LOOK,
      ],
    });
    editor.current = made;
    // Outside of the shadow root, nobody sees that a text is being typed.
    function keepKeys(event: KeyboardEvent) {
      if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
    }
    element.addEventListener("keydown", keepKeys);
    return () => {
      element.removeEventListener("keydown", keepKeys);
      made.destroy();
    };
  }, [path, isReadOnly]);

  useEffect(() => {
    const { state } = editor.current as EditorView;
    if (state.doc.toString() === text) return;
    editor.current?.dispatch({ changes: { from: 0, to: state.doc.length, insert: text } });
  }, [text]);

  useEffect(() => {
    editor.current?.dispatch({ effects: showFindings.of(findings) });
  }, [findings, path, isReadOnly]);

  useEffect(() => {
    const { state } = editor.current as EditorView;
    if (!line || line > state.doc.lines) return;
    const anchor = state.doc.line(line).from;
    const scroll = EditorView.scrollIntoView(anchor, { y: "center" });
    editor.current?.dispatch({ selection: { anchor }, effects: scroll });
  }, [line, path, isReadOnly]);

  return <div ref={host} style={{ display: "grid", flex: 1, minWidth: 0, minHeight: 0 }} />;
}

/** Chromium would give a text in the place of a coloured word an inline style, which is blocked. */
const TYPE_OVER = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { state } = view;
    if (event.inputType !== "insertText" || !event.data || state.readOnly || state.selection.main.empty) return false;
    event.preventDefault();
    view.dispatch(state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

// -- findings

const showFindings = StateEffect.define<readonly FindingAnswer[]>();

const shownFindings = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(shown, transaction) {
    for (const effect of transaction.effects) {
      if (effect.is(showFindings)) return decorate(transaction.state.doc, effect.value);
    }
    return shown.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

function decorate(doc: Text, findings: readonly FindingAnswer[]): DecorationSet {
  const ranges = findings.flatMap((finding) => {
    const line = doc.line(Math.min(Math.max(finding.line ?? 1, 1), doc.lines));
    return [
      Decoration.line({ class: `finding-${finding.severity}` }).range(line.from),
      Decoration.widget({ widget: new Note(finding), block: true, side: 1 }).range(line.to),
    ];
  });
  return Decoration.set(ranges, true);
}

class Note extends WidgetType {
  constructor(readonly finding: FindingAnswer) {
    super();
  }

  override eq(other: Note): boolean {
    return other.finding === this.finding;
  }

  override toDOM(): HTMLElement {
    const { severity, code, message, hint } = this.finding;
    const note = document.createElement("div");
    note.className = `note finding-${severity}`;
    note.textContent = [`${severity} ${code}: ${message}`, ...hint].join("; ");
    return note;
  }
}

// -- languages and look

const tokenTable = { property: tags.propertyName };
const script = StreamLanguage.define({ ...javascript, tokenTable });

const LANGUAGES: Record<string, Extension> = {
  json: StreamLanguage.define({ ...json, tokenTable }),
  py: StreamLanguage.define(python),
  jsx: script,
  js: script,
  yaml: StreamLanguage.define(yaml),
  yml: StreamLanguage.define(yaml),
};

function languageOf(path: string): Extension {
  return LANGUAGES[path.slice(path.lastIndexOf(".") + 1)] ?? [];
}

const COLORS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--thread-5)" },
  { tag: [tags.propertyName, tags.definition(tags.variableName)], color: "var(--thread-0)" },
  { tag: tags.string, color: "var(--verdigris)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--thread-4)" },
  { tag: [tags.comment, tags.meta], color: "var(--ink-3)" },
]);

const LOOK: Extension = [
  syntaxHighlighting(COLORS),
  EditorView.theme({
    "&": { height: "100%", minHeight: "0", background: "var(--panel)", color: "var(--ink)" },
    "&.cm-focused": { outline: "2px solid var(--indigo)", outlineOffset: "-2px" },
    ".cm-scroller": { overflow: "auto", font: "var(--mono)" },
    ".cm-content": { padding: "var(--space-2) 0", caretColor: "var(--ink)" },
    ".cm-gutters": { border: "0", background: "var(--panel)", color: "var(--ink-3)" },
    ".cm-lineNumbers .cm-gutterElement": { padding: "0 var(--space-3)" },
    ".cm-cursor": { borderLeftColor: "var(--ink)" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
      { background: "var(--indigo-wash)" },
    "&.cm-focused .cm-matchingBracket": { background: "var(--indigo-wash)" },
    ".finding-error": { background: "var(--madder-wash)" },
    ".finding-warning": { background: "var(--weld-wash)" },
    ".note": { padding: "2px var(--space-2)", font: "var(--text-label)" },
    ".note.finding-error": { color: "var(--madder)" },
    ".note.finding-warning": { color: "var(--weld)" },
  }),
];
