/**
 * An editor of YAML with line numbers, and problems at their lines: CodeMirror in our colours. It comes late.
 *
 * Tab leaves it, as it leaves any field; Ctrl-] and Ctrl-[ indent. What may stand at the cursor is offered while one
 * types, and by Ctrl-Space.
 */

import { autocompletion, type CompletionContext, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { type Ref, useEffect, useImperativeHandle, useRef } from "react";

/** What may stand at a place of a text; undefined: nothing is known there. */
export type Complete = (
  text: string,
  cursor: number,
) => { from: number; options: { text: string; detail: string; info: string }[] } | undefined;

/** Goes to a line, from 1. */
export interface EditorHandle {
  goTo: (line: number) => void;
}

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: tags.comment, color: "var(--dim)", fontStyle: "italic" },
  { tag: [tags.string, tags.content], color: "var(--text)" },
]);

const LOOK = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "12px", height: "100%" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-content": { fontFamily: "var(--font-mono)", caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--dim)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 30%, transparent)",
  },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--hover)", color: "var(--text)" },
  ".cm-completionDetail": { color: "var(--dim)", fontStyle: "normal" },
  ".cm-completionInfo": { maxWidth: "20rem", fontFamily: "var(--font-sans)" },
  ".cm-diagnostic-error": { borderLeft: "4px solid var(--bad)" },
});

export default function Editor(props: {
  label: string;
  /** What is in it at first. */
  text: string;
  onChange: (text: string) => void;
  problems: { line?: number; message: string }[];
  complete?: Complete;
  handle?: Ref<EditorHandle>;
}) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const first = useRef({ text: props.text, label: props.label });
  const change = useRef(props.onChange);
  change.current = props.onChange;
  const complete = useRef(props.complete);
  complete.current = props.complete;
  useEffect(() => {
    const shown = new EditorView({
      parent: place.current as HTMLDivElement,
      state: EditorState.create({
        doc: first.current.text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          highlightActiveLine(),
          yaml(),
          syntaxHighlighting(COLOURS),
          lintGutter(),
          autocompletion({ override: [(context) => offered(context, complete.current)], icons: false }),
          keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
          LOOK,
          EditorView.contentAttributes.of({ "aria-label": first.current.label, spellcheck: "false" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) change.current(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = shown;
    return () => shown.destroy();
  }, []);
  useEffect(() => {
    const shown = view.current;
    if (!shown) return;
    const { doc } = shown.state;
    const diagnostics = props.problems.flatMap(({ line, message }) => {
      if (line === undefined || line > doc.lines) return [];
      const { from, to } = doc.line(line);
      return [{ from, to, message, severity: "error" as const }];
    });
    shown.dispatch(setDiagnostics(shown.state, diagnostics));
  }, [props.problems]);
  useImperativeHandle(props.handle, () => ({
    goTo: (line) => {
      const shown = view.current;
      if (!shown || line > shown.state.doc.lines) return;
      shown.dispatch({ selection: { anchor: shown.state.doc.line(line).from }, scrollIntoView: true });
      shown.focus();
    },
  }));
  return <div ref={place} className="h-96 resize-y overflow-hidden rounded-md border border-line" />;
}

function offered(context: CompletionContext, complete: Complete | undefined) {
  const found = complete?.(context.state.doc.toString(), context.pos);
  // Unasked only once a word is begun.
  if (!found?.options.length || (!context.explicit && found.from === context.pos)) return null;
  const options = found.options.map(({ text, detail, info }) => ({ label: text, detail, info: info || undefined }));
  return { from: found.from, options, validFor: /^[\w.-]*$/ };
}
