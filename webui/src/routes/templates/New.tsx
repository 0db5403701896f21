/** A new template: its name, where it goes, its text. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { useLive } from "../../services/live";
import { meQuery } from "../../services/session";
import { createTemplate } from "../../services/templates";
import { workspacesQuery } from "../../services/workspaces";
import { Button, FIELD } from "../../ui/Button";
import type { Blame } from "../../ui/blame";
import { Field } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { say } from "../../ui/overlays";
import { Page } from "../../ui/Page";
import { visible } from "../../visible";
import { keepTemplate, keptTemplate, type TemplateDraft } from "./draft";
import { Text } from "./Text";

const route = getRouteApi("/shell/templates");
const BLAME: Blame = { name: /name of a template|already exists/ };
const UNCATEGORIZED = 1;
const BEGINNING = `resources:
  slots_per_trial: 1
max_restarts: 2
`;

export function NewTemplate() {
  const me = useSuspenseQuery(meQuery).data;
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const workspaces = useLive(workspacesQuery({})).data?.rows ?? [];
  const [kept] = useState(() => keptTemplate(me.id, undefined));
  const [draft, setDraft] = useState<TemplateDraft>(kept ?? { name: "", workspaceId: UNCATEGORIZED, text: BEGINNING });
  const change = (changed: Partial<TemplateDraft>) => {
    const next = { ...draft, ...changed };
    keepTemplate(me.id, undefined, next);
    setDraft(next);
  };
  const submit = async () => {
    const { name } = await createTemplate(draft.name, draft.text, draft.workspaceId);
    keepTemplate(me.id, undefined, undefined);
    say({ text: `Created template ${name}` });
    await client.invalidateQueries({ queryKey: ["templates"] });
    await navigate({ search: { name } });
  };
  const discard = () => {
    keepTemplate(me.id, undefined, undefined);
    void navigate({ search: {} });
  };
  return (
    <Page
      title="New template"
      name="New template"
      aside={kept && <p className="text-dim">This is your unsaved draft.</p>}
    >
      <Form label="Template" blame={BLAME} onSubmit={submit} className="flex min-w-0 max-w-4xl flex-col gap-3">
        {(at, busy, problem) => (
          <>
            <Field label="Name" problem={at("name")}>
              {(ids) => (
                <input
                  {...ids}
                  required
                  autoComplete="off"
                  className={FIELD}
                  value={draft.name}
                  onChange={(event) => change({ name: event.target.value })}
                />
              )}
            </Field>
            <Field label="Workspace" hint="It is listed there; everyone can use it, whatever their workspace.">
              {(ids) => (
                <select
                  {...ids}
                  className={FIELD}
                  value={draft.workspaceId}
                  onChange={(event) => change({ workspaceId: Number(event.target.value) })}
                >
                  {!workspaces.some((each) => each.id === draft.workspaceId) && (
                    <option value={draft.workspaceId}>Workspace {draft.workspaceId}</option>
                  )}
                  {workspaces.map((each) => (
                    <option key={each.id} value={each.id}>
                      {visible(each.name)}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            <Text text={draft.text} onChange={(text) => change({ text })} />
            {problem && <div className="whitespace-pre-wrap">{problem}</div>}
            <div className="flex gap-2">
              <Button type="submit" look="primary" disabled={busy}>
                Create
              </Button>
              <Button onClick={discard}>Discard</Button>
            </div>
          </>
        )}
      </Form>
    </Page>
  );
}
