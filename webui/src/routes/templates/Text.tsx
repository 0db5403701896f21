/** The text of a template, with what the master finds wrong at its lines, a moment after the last key. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Suspense, useEffect, useRef, useState } from "react";
import { lazy } from "../../parts";
import { Refused } from "../../services/client";
import { configSchemaQuery } from "../../services/submissions";
import { checkTemplate } from "../../services/templates";
import type { EditorHandle } from "../../ui/Editor";
import { Loading, Problem } from "../../ui/notices";
import { completionsAt, type Schema } from "../create/completion";
import { type Problem as Found, problemsOf } from "../create/problems";

const Editor = lazy(() => import("../../ui/Editor"));
const AFTER_MS = 400;
const NONE: Found[] = [];

export function Text({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const editor = useRef<EditorHandle>(null);
  const schema = useQuery(configSchemaQuery).data as Schema | undefined;
  const [late, setLate] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setLate(text), AFTER_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const checked = useQuery({
    queryKey: ["template check", late],
    // What it is called has no part in it.
    queryFn: ({ signal }) => checkTemplate("template", late, signal),
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 30_000,
    gcTime: 30_000,
  });
  const { error } = checked;
  const refused = error instanceof Refused ? error.message : "";
  const [problems, setProblems] = useState(NONE);
  useEffect(() => setProblems(refused ? problemsOf(refused) : NONE), [refused]);
  return (
    <>
      <Suspense fallback={<Loading what="the editor" />}>
        <Editor
          label="Configuration of the template"
          text={text}
          onChange={onChange}
          problems={problems}
          complete={(typed, cursor) => schema && completionsAt(schema, typed, cursor)}
          handle={editor}
        />
      </Suspense>
      {error && !refused && <Problem error={error} retry={() => void checked.refetch()} />}
      {problems.length > 0 && (
        <ul aria-label="Problems" className="flex flex-col gap-1">
          {problems.map(({ line, message }) => (
            <li key={`${line}:${message}`} className="break-words">
              {line !== undefined && (
                <button type="button" className="min-h-6 text-bad underline" onClick={() => editor.current?.goTo(line)}>
                  Line {line}
                </button>
              )}{" "}
              {message}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
