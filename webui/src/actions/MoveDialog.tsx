/** Files experiments in another project; they can be filed back. */

import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { moveExperiments } from "../services/actions";
import { projectsQuery } from "../services/projects";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { Problem } from "../ui/notices";
import { visible } from "../visible";
import { type Chosen, named, outcome, refresh, report } from "./perform";

export default function MoveDialog(props: { chosen: Chosen; onClose: () => void; onDone?: () => void }) {
  const { chosen, onClose, onDone } = props;
  const client = useQueryClient();
  const projects = useQuery(projectsQuery);
  const [picked, setPicked] = useState("");
  const submit = async () => {
    const results = await moveExperiments(chosen.target, Number(picked));
    onClose();
    onDone?.();
    const well = new Set(results.filter((result) => !result.error).map((result) => result.id));
    const back = chosen.known.filter((each) => well.has(each.id) && each.projectId !== Number(picked));
    const canUndo = "ids" in chosen.target && back.length > 0;
    report("Moved", results, chosen, () => void moveBack(client, back), canUndo);
    await refresh(client);
  };
  return (
    <FormDialog title={`Move ${named(chosen)}`} yes="Move" onClose={onClose} onSubmit={submit}>
      {projects.error ? (
        <Problem error={projects.error} retry={() => void projects.refetch()} />
      ) : (
        <Field label="To the project">
          {(ids) => (
            <select
              {...ids}
              required
              className={FIELD}
              value={picked}
              onChange={(event) => setPicked(event.target.value)}
            >
              <option value="">{projects.data ? "Choose one" : "Loading…"}</option>
              {projects.data?.map((project) => (
                <option key={project.id} value={project.id}>
                  {visible(`${project.workspaceName} / ${project.name}`)}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
    </FormDialog>
  );
}

async function moveBack(client: QueryClient, rows: Chosen["known"]): Promise<void> {
  for (const projectId of new Set(rows.map((row) => row.projectId))) {
    const known = rows.filter((row) => row.projectId === projectId);
    const chosen = { target: { ids: known.map((row) => row.id) }, known };
    const results = await outcome(moveExperiments(chosen.target, projectId), `Move ${named(chosen)} back`);
    if (results) report("Moved back", results, chosen, () => {}, false);
  }
  await refresh(client);
}
