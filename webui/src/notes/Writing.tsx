/** A note while it is written: its text and how it will look; and what somebody else has made of it meanwhile. */

import { type FormEvent, useDeferredValue, useLayoutEffect, useRef, useState } from "react";
import type { Note } from "../services/projects";
import { Button, FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { Section } from "../ui/Page";
import type { NoteDraft } from "./draft";
import { Markdown } from "./Markdown";
import { placeOf } from "./merge";

interface Props {
  draft: NoteDraft;
  notes: Note[];
  /** Somebody has just begun it: what they pressed is gone, and the focus goes where they write. */
  begun: boolean;
  change: (draft: NoteDraft) => void;
  /** Raises whatever it was refused with. */
  onSave: () => Promise<void>;
  onDrop: () => void;
}

export function Writing({ draft, notes, begun, change, onSave, onDrop }: Props) {
  const name = useRef<HTMLInputElement>(null);
  const text = useRef<HTMLTextAreaElement>(null);
  const first = useRef(begun ? (draft.of ? text : name) : undefined);
  useLayoutEffect(() => first.current?.current?.focus(), []);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const looks = useDeferredValue(draft.contents);
  const { at, of } = draft;
  const overtaken = of !== undefined && at !== undefined && placeOf(notes, at, of) === undefined;
  const save = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      await onSave();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void save(event)} className="flex min-w-0 flex-col gap-3">
      {overtaken && <Overtaken draft={draft} theirs={notes[at]} change={change} onDrop={onDrop} />}
      <Field label="Name">
        {(ids) => (
          <input
            {...ids}
            ref={name}
            required
            className={`${FIELD} max-w-96`}
            value={draft.name}
            onChange={(event) => change({ ...draft, name: event.target.value })}
          />
        )}
      </Field>
      <div className="grid min-w-0 gap-4 lg:grid-cols-2">
        <Field label="Text" hint="Markdown. HTML in it is shown as text. It is kept in this tab until you save it.">
          {(ids) => (
            <textarea
              {...ids}
              ref={text}
              rows={20}
              className={`${FIELD} py-1 font-mono text-sm`}
              value={draft.contents}
              onChange={(event) => change({ ...draft, contents: event.target.value })}
            />
          )}
        </Field>
        <Section title="Preview">
          <Markdown text={looks} />
        </Section>
      </div>
      {problem && (
        <p role="alert" className="break-words text-bad">
          {problem}
        </p>
      )}
      <p className="flex gap-2">
        <Button type="submit" look="primary" disabled={busy || overtaken}>
          Save
        </Button>
        <Button onClick={onDrop}>Discard</Button>
      </p>
    </form>
  );
}

function Overtaken(props: {
  draft: NoteDraft;
  theirs: Note | undefined;
  change: (draft: NoteDraft) => void;
  onDrop: () => void;
}) {
  const { draft, theirs, change, onDrop } = props;
  const keep = () => change(theirs ? { ...draft, of: theirs } : { name: draft.name, contents: draft.contents });
  return (
    <div role="alert" className="flex flex-col items-start gap-2 rounded-md border border-wait p-3">
      <p className="font-semibold text-wait">! Someone else changed or deleted this note while you were editing</p>
      <p>What you typed is here, and is not saved. Choose what to keep:</p>
      <p className="flex flex-wrap gap-2">
        <Button onClick={keep}>{theirs ? "Keep mine, in place of theirs" : "Keep mine as a new note"}</Button>
        <Button onClick={onDrop}>{theirs ? "Take theirs, discard mine" : "Discard mine"}</Button>
      </p>
      {theirs && (
        <details className="w-full min-w-0">
          <summary className="cursor-pointer">The note as it is now: {theirs.name}</summary>
          <pre className="mt-2 max-h-60 overflow-auto whitespace-pre-wrap break-words rounded-md bg-sunken p-2 font-mono text-sm">
            {theirs.contents}
          </pre>
        </details>
      )}
    </div>
  );
}
