/** Who may do what in a workspace. There are no roles: what decides is said as it is. */

import type { ReactNode } from "react";
import type { Workspace } from "../../services/workspaces";
import { Table } from "../../ui/Table";

interface Right {
  what: string;
  who: ReactNode;
}

export function Members({ workspace }: { workspace: Workspace }) {
  const owner = workspace.username;
  const rights: Right[] = [
    { what: "See it and all that is in it", who: "everyone who is logged in" },
    { what: "Create projects in it, submit experiments and tasks to it", who: "everyone who is logged in" },
    {
      what: "Change, archive and delete it",
      who: workspace.immutable
        ? "nobody: it is the cluster's own"
        : `its owner, ${owner || "who is gone"}, and administrators`,
    },
    { what: "Choose the user and group that its tasks run as on agents", who: "administrators" },
    {
      what: "Change, move, archive and delete a project of it",
      who: `the project's owner, ${owner}, and administrators`,
    },
    { what: "Stop, change and delete an experiment or a task", who: "its owner, and administrators" },
    { what: "Change a template or a model of it", who: "its owner, and administrators" },
  ];
  return (
    <>
      <p className="max-w-[80ch]">
        This cluster has no roles, so a workspace has no list of members: what counts is who owns something, and who is
        an administrator. Groups name sets of people and give nobody any rights.
      </p>
      <Table
        label="Who may do what"
        rows={rights}
        keyOf={(right) => right.what}
        columns={[
          { id: "what", title: "To", cell: (right) => right.what },
          { id: "who", title: "Is allowed", wide: true, cell: (right) => right.who },
        ]}
      />
    </>
  );
}
