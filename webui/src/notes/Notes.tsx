/**
 * The notes of a project: pages of Markdown that are read, written and deleted.
 *
 * Who writes is told when somebody else has changed the same note meanwhile, and loses nothing of it.
 */

import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useCommands } from "../keys/commands";
import { type Note, type Project, projectQuery, putNotes } from "../services/projects";
import { Button } from "../ui/Button";
import { Empty } from "../ui/notices";
import { focusAgain, say } from "../ui/overlays";
import { visible } from "../visible";
import { keepNote, keptNote, type NoteDraft } from "./draft";
import { Markdown } from "./Markdown";
import { type Change, changed, placeOf } from "./merge";
import { Writing } from "./Writing";

interface Props {
  project: Project;
  userId: number;
  mayEdit: boolean;
  /** From 0. */
  at: number;
  open: (at: number) => void;
}

export default function Notes({ project, userId, mayEdit, at, open }: Props) {
  const client = useQueryClient();
  const notes = project.notes ?? [];
  const [draft, setDraft] = useState(() => (mayEdit ? keptNote(userId, project.id) : undefined));
  const begun = useRef(false);
  const begin = (next: NoteDraft) => {
    begun.current = true;
    write(next);
  };
  /** What has the focus goes with the form. */
  const end = () => {
    write(undefined);
    focusAgain(null);
  };
  const write = (next: NoteDraft | undefined) => {
    keepNote(userId, project.id, next);
    setDraft(next);
  };
  const show = (stored: Note[]) => {
    const { queryKey } = projectQuery(project.id);
    client.setQueryData(queryKey, (former: Project | undefined) => former && { ...former, notes: stored });
  };
  /** Raises Refused. What others have changed elsewhere stays as they left it. */
  const put = async (change: Change): Promise<boolean> => {
    const next = changed(notes, change);
    if (!next) return false;
    try {
      show(await putNotes(project.id, next, notes));
    } catch (error) {
      void client.invalidateQueries({ queryKey: projectQuery(project.id).queryKey });
      throw error;
    }
    return true;
  };
  const save = async () => {
    if (!draft) return;
    const note = { name: draft.name.trim(), contents: draft.contents };
    const change: Change =
      draft.of && draft.at !== undefined ? { kind: "put", at: draft.at, of: draft.of, note } : { kind: "add", note };
    const place = change.kind === "put" ? placeOf(notes, change.at, change.of) : notes.length;
    if (!(await put(change))) throw new Error("Someone else changed this note: choose above what to keep.");
    end();
    open(place ?? 0);
  };
  const drop = async (of: Note, place: number) => {
    const done = await put({ kind: "drop", at: place, of }).catch((error: unknown) => {
      say({ text: error instanceof Error ? error.message : String(error) });
      return true;
    });
    if (!done) return;
    const back = () => client.fetchQuery({ ...projectQuery(project.id), staleTime: 0 }).then(putBack);
    const putBack = async (now: Project) => {
      const present = now.notes ?? [];
      const next = changed(present, { kind: "add", note: of, at: Math.min(place, present.length) }) ?? present;
      show(await putNotes(project.id, next, present));
    };
    say({ text: `Deleted note ${of.name || "without a name"}`, undo: () => void back() });
    open(Math.max(0, place - 1));
  };
  const discard = () => {
    end();
    say({ text: "Discarded your changes", undo: () => write(draft) });
  };
  const add = () => begin({ name: "", contents: "" });
  const shown = notes[at] ?? notes[0];
  const place = notes[at] ? at : 0;
  const edit = () =>
    shown && begin({ at: place, of: shown, ...shown, name: shown.name ?? "", contents: shown.contents ?? "" });
  useCommands(
    mayEdit && !draft
      ? [
          { title: "Write a new note", run: add },
          ...(shown ? [{ name: "edit" as const, title: `Edit note ${shown.name}`, run: edit }] : []),
        ]
      : [],
  );
  if (draft) {
    return <Writing draft={draft} notes={notes} begun={begun.current} change={write} onSave={save} onDrop={discard} />;
  }
  if (!shown) {
    return (
      <Empty title="There are no notes yet" command={`tenax project add-note ${project.id} NAME TEXT`}>
        {mayEdit && (
          <p className="pb-2">
            <Button onClick={add}>New note</Button>
          </p>
        )}
        Notes are Markdown pages about what was tried here and how it went. At the command line:
      </Empty>
    );
  }
  return (
    <div className="grid min-w-0 gap-4 md:grid-cols-[minmax(0,14rem)_minmax(0,1fr)]">
      <div className="flex min-w-0 flex-col items-start gap-2">
        <nav aria-label="Notes" className="w-full">
          <ul className="flex flex-col gap-0.5">
            {notes.map((note, index) => (
              <li key={index}>
                <Link
                  to="."
                  search={{ tab: "notes", note: index + 1 } as never}
                  aria-current={index === place ? "page" : undefined}
                  title={visible(note.name ?? "")}
                  className={`block min-h-7 truncate rounded-md px-2 leading-7 hover:bg-hover ${index === place ? "bg-hover font-medium" : "text-dim"}`}
                >
                  {visible(note.name || "Without a name")}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        {mayEdit && <Button onClick={add}>New note</Button>}
      </div>
      <article className="flex min-w-0 flex-col gap-3">
        <div className="flex flex-wrap items-center gap-2">
          <h2 className="min-w-0 break-words font-semibold text-lg">{visible(shown.name || "Without a name")}</h2>
          {mayEdit && (
            <>
              <Button onClick={edit} aria-keyshortcuts="e">
                Edit
              </Button>
              <Button look="danger" onClick={() => void drop(shown, place)}>
                Delete
              </Button>
            </>
          )}
        </div>
        {shown.contents ? <Markdown text={shown.contents} /> : <p className="text-dim">This note is empty.</p>}
      </article>
    </div>
  );
}
