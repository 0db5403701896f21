/** One template: what it sets, and its text, which its owner and administrators change. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { Confirm } from "../../actions/Confirm";
import { Buttons, type Offered } from "../../actions/offered";
import { outcome } from "../../actions/perform";
import { mayChange } from "../../actions/states";
import { useCommands } from "../../keys/commands";
import { lazy } from "../../parts";
import { useLive } from "../../services/live";
import { meQuery } from "../../services/session";
import { changeTemplate, deleteTemplate, renameTemplate, type Template, templateQuery } from "../../services/templates";
import { Button } from "../../ui/Button";
import { Copy } from "../../ui/Copy";
import { Facts } from "../../ui/Facts";
import { Form } from "../../ui/Form";
import { Loading, Problem } from "../../ui/notices";
import { closeDialog, openDialog, say } from "../../ui/overlays";
import { Page, Section } from "../../ui/Page";
import { Moment } from "../../ui/values";
import { visible } from "../../visible";
import { yaml } from "../../yaml";
import { keepTemplate, keptTemplate, type TemplateDraft } from "./draft";
import { Text } from "./Text";

const TextDialog = lazy(() => import("../../actions/TextDialog"));
const route = getRouteApi("/shell/templates");

export function OneTemplate({ name }: { name: string }) {
  const me = useSuspenseQuery(meQuery).data;
  const shown = useLive(templateQuery(name));
  const offered = useOffered(name);
  const mine = shown.data !== undefined && mayChange(me, shown.data.userId);
  useCommands(mine ? offered : []);
  const title = `Template ${name}`;
  return (
    <Page
      title={title}
      name={title}
      aside={
        <>
          {mine && <Buttons of={offered} />}
          <Link to="/templates" search={{}} className="text-accent underline">
            All templates
          </Link>
        </>
      }
    >
      {shown.data ? (
        <>
          <Facts
            facts={[
              ["Workspace", visible(shown.data.workspaceName || "–")],
              ["Owner", visible(shown.data.username || "–")],
              ["Created", <Moment key="created" at={shown.data.createdAt} />],
              ["Changed", <Moment key="changed" at={shown.data.modifiedAt} />],
            ]}
          />
          {mine ? <Change template={shown.data} userId={me.id} /> : <Read template={shown.data} />}
        </>
      ) : shown.error ? (
        <Problem error={shown.error} retry={() => void shown.refetch()} />
      ) : (
        <Loading what="the template" />
      )}
    </Page>
  );
}

function Read({ template }: { template: Template }) {
  const text = yaml(template.config);
  return (
    <Section title="Configuration" aside={<Copy text={text} />}>
      <p className="text-dim">Only its owner and administrators can change it and see what is secret in it.</p>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
        tabIndex={0}
        className="overflow-x-auto rounded-md border border-line bg-sunken p-3 font-mono text-sm"
      >
        {text}
      </pre>
    </Section>
  );
}

/** What was typed is of the one there was then: where somebody has changed it since, one chooses. */
function Change({ template, userId }: { template: Template; userId: number }) {
  const client = useQueryClient();
  const { name } = template;
  const [draft, setDraft] = useState(() => keptTemplate(userId, name));
  // The editor has a text of its own: with another number, or where the template is another, it begins anew.
  const [begun, setBegun] = useState(0);
  const write = (next: TemplateDraft | undefined) => {
    keepTemplate(userId, name, next);
    setDraft(next);
    if (!next) setBegun(begun + 1);
  };
  const overtaken = draft !== undefined && draft.of !== template.modifiedAt;
  const type = (text: string) =>
    write({ name, workspaceId: template.workspaceId, text, of: draft ? draft.of : template.modifiedAt });
  const save = async () => {
    if (!draft) return;
    // What is theirs by now is shown with the choice.
    const saved = await changeTemplate(name, draft.text, draft.of).catch((error: unknown) => {
      void client.invalidateQueries({ queryKey: templateQuery(name).queryKey });
      throw error;
    });
    client.setQueryData(templateQuery(name).queryKey, saved);
    write(undefined);
    say({ text: `Saved template ${name}` });
    await client.invalidateQueries({ queryKey: ["templates"] });
  };
  return (
    <Section title="Configuration">
      <p className="text-dim">What was already submitted with it does not change. Comments are not kept.</p>
      {overtaken && (
        <div role="alert" className="flex flex-wrap items-center gap-3 rounded-md border border-wait p-3">
          <p>Someone has changed this template since you began.</p>
          <Button onClick={() => write(undefined)}>Take theirs, discard mine</Button>
          <Button onClick={() => write({ ...draft, of: template.modifiedAt })}>Keep mine, in place of theirs</Button>
          <details className="w-full">
            <summary>Theirs</summary>
            <pre className="overflow-x-auto rounded-md bg-sunken p-2 font-mono text-sm">{yaml(template.config)}</pre>
          </details>
        </div>
      )}
      <Form label="Template" onSubmit={save} className="flex min-w-0 max-w-4xl flex-col gap-3">
        {(_, busy, problem) => (
          <>
            <Text
              key={`${begun} ${draft ? draft.of : template.modifiedAt}`}
              text={draft?.text ?? yaml(template.config)}
              onChange={type}
            />
            {problem && <div className="whitespace-pre-wrap">{problem}</div>}
            <div className="flex gap-2">
              <Button type="submit" look="primary" disabled={busy || !draft || overtaken}>
                Save
              </Button>
              {draft && <Button onClick={() => write(undefined)}>Discard your changes</Button>}
            </div>
          </>
        )}
      </Form>
    </Section>
  );
}

function useOffered(name: string): Offered[] {
  const client = useQueryClient();
  const navigate = route.useNavigate();
  const again = () => client.invalidateQueries({ queryKey: ["templates"] });
  const rename = () =>
    openDialog((close) => (
      <TextDialog
        title={`Rename template ${name}`}
        label="Name"
        hint="Scripts that name it have to be changed."
        yes="Rename"
        value={name}
        required
        onClose={close}
        onSubmit={async (to) => {
          const renamed = await renameTemplate(name, to);
          say({ text: `Renamed template ${name} to ${renamed.name}` });
          await navigate({ search: { name: renamed.name } });
          await again();
        }}
      />
    ));
  const remove = async () => {
    closeDialog();
    const done = await outcome(
      deleteTemplate(name).then(() => true),
      `Delete template ${name}`,
    );
    if (!done) return;
    say({ text: `Deleted template ${name}` });
    await navigate({ search: {} });
    await again();
  };
  const ask = () =>
    openDialog((close) => (
      <Confirm
        title={`Delete template ${name}?`}
        names={[]}
        size={1}
        warning="What was already submitted with it does not change. This cannot be undone."
        yes="Delete"
        onYes={() => void remove()}
        onNo={close}
      />
    ));
  return [
    { short: "Rename", title: `Rename template ${name}`, run: rename },
    { short: "Delete", title: `Delete template ${name}`, danger: true, run: ask },
  ];
}
