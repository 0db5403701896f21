/** Puts users into a group. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { count } from "../format";
import { useLive } from "../services/live";
import { changeGroup, groupsQuery } from "../services/users";
import { FIELD } from "../ui/Button";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";
import { say } from "../ui/overlays";

export default function PutIntoGroup({ userIds, onClose }: { userIds: number[]; onClose: () => void }) {
  const client = useQueryClient();
  const groups = useLive(groupsQuery).data?.rows ?? [];
  const [groupId, setGroupId] = useState("");
  const submit = async () => {
    const group = await changeGroup(Number(groupId), { addUsers: userIds });
    onClose();
    say({ text: `Added ${count(userIds.length)} ${userIds.length === 1 ? "user" : "users"} to ${group.name}` });
    for (const kind of ["groups", "group"]) void client.invalidateQueries({ queryKey: [kind] });
  };
  return (
    <FormDialog title="Add to a group" yes="Add" onClose={onClose} onSubmit={submit}>
      <Field label="Group" hint={groups.length === 0 ? "There are no groups yet. Create one under Groups." : undefined}>
        {(ids) => (
          <select
            {...ids}
            required
            className={FIELD}
            value={groupId}
            onChange={(event) => setGroupId(event.target.value)}
          >
            <option value="">Choose one</option>
            {groups.map(({ group }) => (
              <option key={group.groupId} value={group.groupId}>
                {group.name}
              </option>
            ))}
          </select>
        )}
      </Field>
    </FormDialog>
  );
}
