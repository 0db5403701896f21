/** The code of what is submitted: a folder, one script, or that of the experiment it is forked from. */

import { useState } from "react";
import { count } from "../../format";
import { Button, FIELD, FILES } from "../../ui/Button";
import { Field } from "../../ui/Field";
import { Section } from "../../ui/Page";
import type { Draft } from "./draft";
import { EXAMPLE } from "./example";
import { folderOf } from "./files";

export function Code(props: { draft: Draft; change: (changed: Partial<Draft>) => void; fork?: number }) {
  const { draft, change, fork } = props;
  const [problem, setProblem] = useState("");
  const take = async (list: FileList | null) => {
    if (!list?.length) return;
    setProblem("");
    try {
      change({ folder: await folderOf(list) });
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const own = fork === undefined ? "without code" : `with the code of experiment ${fork}`;
  return (
    <Section title="Code">
      <Field
        label="Folder"
        hint="Everything in it is sent, except what no task needs (.git, __pycache__). A .detignore file is not read here."
      >
        {(ids) => (
          <input
            {...ids}
            type="file"
            className={FILES}
            multiple
            ref={(field) => field?.setAttribute("webkitdirectory", "")}
            onChange={(event) => void take(event.target.files)}
          />
        )}
      </Field>
      {problem && (
        <p role="alert" className="text-bad">
          {problem}
        </p>
      )}
      {draft.folder ? (
        <p className="flex flex-wrap items-center gap-2">
          {draft.folder.name}: {count(draft.folder.files.length)} {draft.folder.files.length === 1 ? "file" : "files"}
          <Button onClick={() => change({ folder: undefined })}>Remove it</Button>
        </p>
      ) : (
        <>
          <Field label="Or a script" hint={`With neither, it is submitted ${own}.`}>
            {(ids) => (
              <textarea
                {...ids}
                rows={8}
                spellCheck={false}
                className={`${FIELD} py-1 font-mono text-sm`}
                placeholder="Paste it here"
                value={draft.script}
                onChange={(event) => change({ script: event.target.value })}
              />
            )}
          </Field>
          {fork === undefined && draft.script === "" && (
            <Button className="self-start" onClick={() => change({ script: EXAMPLE, scriptName: "train.py" })}>
              Insert an example
            </Button>
          )}
          <Field label="File name of the script">
            {(ids) => (
              <input
                {...ids}
                className={`${FIELD} max-w-60`}
                value={draft.scriptName}
                onChange={(event) => change({ scriptName: event.target.value })}
              />
            )}
          </Field>
        </>
      )}
    </Section>
  );
}
