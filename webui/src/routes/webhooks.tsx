/** Webhooks: addresses that are told what happens. The one whose messages are shown stands in the address. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Confirm } from "../actions/Confirm";
import { Buttons, More, type Offered } from "../actions/offered";
import { outcome } from "../actions/perform";
import { mayChange } from "../actions/states";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { lazy } from "../parts";
import { useLive } from "../services/live";
import { meQuery } from "../services/session";
import {
  type Delivery,
  deleteWebhook,
  deliveriesQuery,
  readdressWebhook,
  testWebhook,
  type Webhook,
  webhooksQuery,
} from "../services/webhooks";
import { workspacesQuery } from "../services/workspaces";
import { Button } from "../ui/Button";
import { Empty, Loading, Problem } from "../ui/notices";
import { closeDialog, openDialog, say } from "../ui/overlays";
import { Page, Section } from "../ui/Page";
import { Table } from "../ui/Table";
import { Moment } from "../ui/values";
import { visible } from "../visible";
import { scopeOf, toldOf } from "./webhooks/words";

const TextDialog = lazy(() => import("../actions/TextDialog"));
const WebhookDialog = lazy(() => import("../actions/WebhookDialog"));
const route = getRouteApi("/shell/webhooks");

function called({ id, name }: Webhook): string {
  return visible(name) || String(id);
}

export function WebhooksPage() {
  const { webhook: chosen } = route.useSearch();
  const me = useSuspenseQuery(meQuery).data;
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const found = useLive(webhooksQuery);
  const workspaces = useLive(workspacesQuery({ archived: true })).data?.rows ?? [];
  const own = workspaces.filter((each) => !each.archived && mayChange(me, each.userId));
  const offered = useOffered();
  const again = () => void client.invalidateQueries({ queryKey: ["webhooks"] });
  const mayCreate = me.admin === true || own.length > 0;
  const create = () =>
    openDialog((close) => (
      <WebhookDialog
        everywhere={me.admin === true}
        workspaces={own}
        onClose={close}
        onDone={(made) => {
          say({ text: `Created webhook ${called(made)}` });
          again();
          void navigate({ search: { webhook: made.id } });
        }}
      />
    ));
  // Who is no administrator is shown those of all workspaces, and those of their own.
  const offeredOf = (webhook: Webhook) => (me.admin || webhook.workspaceId ? offered(webhook) : []);
  const opened = found.data?.find(({ id }) => id === chosen);
  const doable = opened ? offeredOf(opened) : [];
  useCommands([...(mayCreate ? [{ title: "Create a webhook", run: create }] : []), ...doable]);
  const nameOf = (id: number) => workspaces.find((each) => each.id === id)?.name ?? `workspace ${id}`;
  return (
    <Page
      title="Webhooks"
      name="Webhooks"
      aside={
        mayCreate ? (
          <Button onClick={create}>New webhook</Button>
        ) : (
          <p className="text-dim">
            Only administrators can create webhooks, and owners of workspaces for theirs. Ask one of them, or create a
            workspace.
          </p>
        )
      }
    >
      {found.error && !found.data ? (
        <Problem error={found.error} retry={() => void found.refetch()} />
      ) : !found.data ? (
        <Loading what="webhooks" />
      ) : found.data.length === 0 ? (
        <Empty title="No webhooks yet" command="tenax webhook create NAME URL --on-state ERROR">
          A webhook tells another service what happens to experiments: a chat, a pager. At the command line:
        </Empty>
      ) : (
        <Table
          label="Webhooks"
          rows={found.data}
          keyOf={(row) => row.id}
          current={opened?.id}
          columns={columnsOf(offeredOf, nameOf)}
        />
      )}
      {found.data && chosen !== undefined && !opened && <p className="text-dim">There is no webhook {chosen} here.</p>}
      {opened && doable.length > 0 && <Messages key={opened.id} webhook={opened} offered={doable} />}
    </Page>
  );
}

function columnsOf(offeredOf: (webhook: Webhook) => Offered[], nameOf: (workspaceId: number) => string) {
  return [
    {
      id: "name",
      title: "Webhook",
      wide: true,
      cell: (row: Webhook) =>
        offeredOf(row).length > 0 ? (
          <Link to="/webhooks" search={{ webhook: row.id }} title={called(row)} className="hover:underline">
            {called(row)}
          </Link>
        ) : (
          <span title={called(row)}>{called(row)}</span>
        ),
    },
    { id: "told", title: "Notified of", wraps: true, cell: (row: Webhook) => toldOf(row.triggers) },
    { id: "scope", title: "Experiments", wraps: true, cell: (row: Webhook) => scopeOf(row, nameOf) },
    {
      id: "url",
      title: "Address",
      wide: true,
      cell: (row: Webhook) => (
        <span title={row.url}>
          {row.url}
          {row.webhookType === "WEBHOOK_TYPE_SLACK" && " (Slack)"}
        </span>
      ),
    },
    {
      id: "actions",
      title: "Actions",
      cell: (row: Webhook) => <More of={offeredOf(row)} label={`Actions on webhook ${called(row)}`} />,
    },
  ];
}

/** What can be done to one, by who may change it. */
function useOffered(): (webhook: Webhook) => Offered[] {
  const client = useQueryClient();
  const navigate = route.useNavigate();
  const refresh = (webhook: Webhook) =>
    Promise.all([["webhooks"], ["deliveries", webhook.id]].map((queryKey) => client.invalidateQueries({ queryKey })));
  const test = async (webhook: Webhook) => {
    const done = await outcome(testWebhook(webhook.id), `Test webhook ${called(webhook)}`);
    if (!done) return;
    if (done.completed) say({ text: `Webhook ${called(webhook)}: the receiver accepted a message. ${done.outcome}` });
    else
      say({
        text: `Webhook ${called(webhook)}: the receiver accepted no message`,
        failures: [{ id: "", reason: done.outcome }],
      });
  };
  const readdress = (webhook: Webhook) =>
    openDialog((close) => (
      <TextDialog
        title={`Change the address of webhook ${called(webhook)}`}
        label="Address"
        hint="Messages that are waiting are sent there, too."
        yes="Change"
        type="url"
        value={webhook.url}
        required
        onClose={close}
        read={async () => {
          const now = await client.fetchQuery({ ...webhooksQuery, staleTime: 0 });
          return now.find(({ id }) => id === webhook.id)?.url ?? "";
        }}
        onSubmit={async (url, former) => {
          await readdressWebhook(webhook.id, url.trim(), former);
          say({ text: `Webhook ${called(webhook)} now sends to another address` });
          await refresh(webhook);
        }}
      />
    ));
  const remove = async (webhook: Webhook) => {
    closeDialog();
    const done = await outcome(
      deleteWebhook(webhook.id).then(() => true),
      `Delete webhook ${called(webhook)}`,
    );
    if (done) {
      say({ text: `Deleted webhook ${called(webhook)}` });
      await navigate({ search: {} });
    }
    await client.invalidateQueries({ queryKey: ["webhooks"] });
  };
  const ask = (webhook: Webhook) =>
    openDialog((close) => (
      <Confirm
        title={`Delete webhook ${called(webhook)}?`}
        names={[webhook.url]}
        size={1}
        warning="Messages that are waiting are not sent. This cannot be undone."
        yes="Delete"
        onYes={() => void remove(webhook)}
        onNo={close}
      />
    ));
  return (webhook) => {
    const title = (what: string) => `${what} webhook ${called(webhook)}`;
    return [
      { short: "Send a test", title: title("Send a test to"), run: () => void test(webhook) },
      { short: "Change the address…", title: title("Change the address of"), run: () => readdress(webhook) },
      { short: "Delete", title: title("Delete"), danger: true, run: () => ask(webhook) },
    ];
  };
}

const DELIVERY: Record<string, [string, string]> = {
  WAITING: ["◷ Waiting", "text-wait"],
  DELIVERED: ["✓ Sent", "text-ok"],
  FAILED: ["✕ Given up", "text-bad"],
};

function Messages({ webhook, offered }: { webhook: Webhook; offered: Offered[] }) {
  const sent = useLive(deliveriesQuery(webhook.id));
  return (
    <Section
      title={`Messages to ${called(webhook)}`}
      aside={
        <>
          <Buttons of={offered} />
          <Button onClick={() => void sent.refetch()}>Refresh</Button>
        </>
      }
    >
      <p className="text-dim">
        Only the address can be changed. For another name or other events, create a new webhook and delete this one.
      </p>
      {sent.error && !sent.data ? (
        <Problem error={sent.error} retry={() => void sent.refetch()} />
      ) : !sent.data ? (
        <Loading what="messages" />
      ) : sent.data.rows.length === 0 ? (
        <p className="text-dim">No messages yet. Tests are not listed.</p>
      ) : (
        <>
          <Table
            label={`Messages to ${called(webhook)}`}
            rows={sent.data.rows}
            keyOf={(row) => row.id}
            columns={SENT}
          />
          {sent.data.total > sent.data.rows.length && (
            <p className="text-dim">
              The newest {count(sent.data.rows.length)} of {count(sent.data.total)}.
            </p>
          )}
        </>
      )}
    </Section>
  );
}

const SENT = [
  { id: "event", title: "Event", cell: (row: Delivery) => row.eventType },
  {
    id: "state",
    title: "State",
    cell: (row: Delivery) => {
      const [word, look] = DELIVERY[row.state] ?? [row.state, ""];
      return <span className={look}>{word}</span>;
    },
  },
  { id: "attempts", title: "Attempts", align: "right" as const, cell: (row: Delivery) => count(row.attempts) },
  { id: "at", title: "Happened", cell: (row: Delivery) => <Moment at={row.createdAt} /> },
  { id: "ended", title: "Ended", cell: (row: Delivery) => <Moment at={row.endedAt} /> },
  { id: "outcome", title: "Answer", wraps: true, cell: (row: Delivery) => row.outcome || "–" },
];
