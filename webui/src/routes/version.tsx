/** One version of a model: what it reached beside the one before, where it comes from, and how to load it. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Confirm } from "../actions/Confirm";
import { Buttons, type Offered } from "../actions/offered";
import { outcome } from "../actions/perform";
import { mayChange } from "../actions/states";
import { bytes, count } from "../format";
import { useCommands } from "../keys/commands";
import { Markdown } from "../notes/Markdown";
import { lazy } from "../parts";
import { useLive } from "../services/live";
import { deleteVersion, type ModelVersion, modelQuery, versionQuery } from "../services/models";
import { meQuery } from "../services/session";
import { Copy } from "../ui/Copy";
import { Facts } from "../ui/Facts";
import { Empty, Loading, Problem } from "../ui/notices";
import { closeDialog, openDialog, say } from "../ui/overlays";
import { Page, Section } from "../ui/Page";
import { Table } from "../ui/Table";
import { Moment, Value } from "../ui/values";
import { visible } from "../visible";
import { yaml } from "../yaml";
import { type Compared, compared } from "./model/compared";

const VersionDialog = lazy(() => import("../actions/VersionDialog"));
const route = getRouteApi("/shell/models/$name/versions/$version");

export function VersionPage() {
  const { name, version: number } = route.useParams();
  const shown = useLive(versionQuery(name, number));
  const all = useLive(modelQuery(name)).data?.versions ?? [];
  const version = shown.data?.version === number ? shown.data : undefined;
  if (!version) {
    return (
      <Page title={`Version ${number}`} name={`Version ${number}`}>
        {shown.error ? (
          <Problem error={shown.error} retry={() => void shown.refetch()} />
        ) : (
          <Loading what="the version" />
        )}
      </Page>
    );
  }
  // The newest are first.
  const before = all.find((each) => each.version < number);
  const after = all.findLast((each) => each.version > number);
  return (
    <Page
      title={<Title version={version} />}
      name={`${version.model.name}, version ${number}`}
      aside={<About version={version} before={before} after={after} />}
    >
      {version.comment && <p className="max-w-[80ch] break-words">{visible(version.comment)}</p>}
      <Source version={version} />
      <Metrics version={version} before={before} />
      <Use version={version} />
      {version.notes && (
        <Section title="Notes">
          <Markdown text={version.notes} />
        </Section>
      )}
      {Object.keys(version.metadata ?? {}).length > 0 && (
        <Section title="Metadata" aside={<Copy text={JSON.stringify(version.metadata, null, 2)} />}>
          <Text text={yaml(version.metadata)} />
        </Section>
      )}
    </Page>
  );
}

function Title({ version }: { version: ModelVersion }) {
  return (
    <>
      <Link
        to="/models/$name"
        params={{ name: String(version.model.id) }}
        className="underline decoration-line hover:decoration-current"
      >
        {visible(version.model.name)}
      </Link>
      {` / version ${version.version}`}
      {version.name && ` ${visible(version.name)}`}
    </>
  );
}

function About(props: { version: ModelVersion; before?: ModelVersion; after?: ModelVersion }) {
  const { version, before, after } = props;
  const { model } = version;
  const client = useQueryClient();
  const navigate = useNavigate();
  const me = useSuspenseQuery(meQuery).data;
  const again = () => {
    for (const kind of ["model", "models", "model_version"]) void client.invalidateQueries({ queryKey: [kind] });
  };
  const what = `version ${version.version} of model ${visible(model.name)}`;
  const remove = async () => {
    closeDialog();
    const done = await outcome(
      deleteVersion(model, version.version).then(() => true),
      `Delete ${what}`,
    );
    if (!done) return;
    say({ text: `Deleted ${what}` });
    await navigate({ to: "/models/$name", params: { name: String(model.id) } });
    again();
  };
  const ask = () =>
    openDialog((close) => (
      <Confirm
        title={`Delete ${what}?`}
        names={[visible(version.name || "") || version.checkpoint.uuid]}
        size={1}
        warning="Its number is never used again. Its checkpoint stays, and can be deleted from then on."
        yes="Delete"
        onYes={() => void remove()}
        onNo={close}
      />
    ));
  const go = (to: ModelVersion | undefined, end: string) => () => {
    const params = { name: String(model.id), version: to?.version ?? 0 };
    if (to) void navigate({ to: "/models/$name/versions/$version", params });
    else say({ text: `This is the ${end} version of model ${visible(model.name)}` });
  };
  const offered: Offered[] = [];
  if (mayChange(me, version.userId) || me.id === model.userId) {
    const edit = () => openDialog((close) => <VersionDialog version={version} onClose={close} onDone={again} />);
    if (!model.archived) offered.push({ name: "edit", short: "Edit", title: `Edit ${what}`, run: edit });
    offered.push({ name: "delete", short: "Delete", title: `Delete ${what}`, run: ask, danger: true });
  }
  useCommands([
    ...offered,
    { name: "previous", title: "The previous version", run: go(before, "first") },
    { name: "next", title: "The next version", run: go(after, "newest") },
  ]);
  return (
    <>
      <p className="text-dim">
        Registered by {visible(version.username)} <Moment at={version.creationTime} />
        {model.archived && ", of an archived model"}
      </p>
      {(version.labels ?? []).map((label) => (
        <span key={label} className="max-w-60 truncate rounded-md border border-line px-1.5" title={label}>
          {label}
        </span>
      ))}
      <Buttons of={offered} />
    </>
  );
}

function Source({ version }: { version: ModelVersion }) {
  const { checkpoint } = version;
  const { trialId, experimentId } = checkpoint.training;
  const sizes = Object.values(checkpoint.resources ?? {}).map(Number);
  const link = "underline";
  return (
    <Facts
      facts={[
        [
          "From",
          trialId ? (
            <Link key="t" to="/trials/$trialId" params={{ trialId }} className={link}>
              Trial {trialId}
            </Link>
          ) : (
            "–"
          ),
        ],
        [
          "Of",
          experimentId ? (
            <Link key="e" to="/experiments/$experimentId" params={{ experimentId }} className={link}>
              Experiment {experimentId}
            </Link>
          ) : (
            "–"
          ),
        ],
        [
          "Its code",
          trialId ? (
            <Link key="c" to="/trials/$trialId" params={{ trialId }} search={{ tab: "code" }} className={link}>
              Files
            </Link>
          ) : (
            "–"
          ),
        ],
        ["Step", count(Number((checkpoint.metadata as { steps_completed?: number }).steps_completed ?? 0))],
        ["Metric of the search", <Value key="m" value={checkpoint.training.searcherMetric} />],
        [
          "Checkpoint",
          <span key="u" title={checkpoint.uuid}>
            {checkpoint.uuid.slice(0, 8)}
          </span>,
        ],
        ["State of its files", checkpoint.state.replace("STATE_", "").replaceAll("_", " ").toLowerCase()],
        ["Size", bytes(sizes.reduce((sum, size) => sum + size, 0))],
      ]}
    />
  );
}

function Metrics({ version, before }: { version: ModelVersion; before: ModelVersion | undefined }) {
  const rows = compared(version.checkpoint.training, before?.checkpoint.training);
  return (
    <Section title="Metrics">
      {rows.length === 0 ? (
        <Empty title="Nothing was reported at its step" />
      ) : (
        <Table
          label="Metrics"
          rows={rows}
          keyOf={(row) => row.name}
          columns={[
            {
              id: "name",
              title: "Metric",
              wide: true,
              cell: (row: Compared) => <span title={visible(row.name)}>{visible(row.name)}</span>,
            },
            {
              id: "now",
              title: `Version ${version.version}`,
              align: "right",
              cell: (row) => <Value value={row.now} />,
            },
            ...(before
              ? [
                  {
                    id: "before",
                    title: `Version ${before.version}`,
                    align: "right" as const,
                    cell: (row: Compared) => <Value value={row.before} />,
                  },
                  {
                    id: "change",
                    title: "Change",
                    align: "right" as const,
                    cell: (row: Compared) => <Change of={row} />,
                  },
                ]
              : []),
          ]}
        />
      )}
      {!before && <p className="text-dim">There is no earlier version.</p>}
    </Section>
  );
}

/** Signed; which way is better is known of the search's metric alone, so no colour says it. */
function Change({ of: { now, before } }: { of: Compared }) {
  if (now === undefined || before === undefined) return <>–</>;
  const change = now - before;
  return (
    <>
      {change > 0 && "+"}
      <Value value={change} />
    </>
  );
}

function Use({ version }: { version: ModelVersion }) {
  const { model } = version;
  const command = `tenax checkpoint download ${version.checkpoint.uuid}`;
  const script = [
    "from tenax.client import Client",
    "",
    "with Client() as client:",
    `    version = client.model(${model.id}).version(${version.version})`,
    "    print(version.checkpoint.download())",
  ].join("\n");
  return (
    <Section title="Download and load">
      <div className="grid min-w-0 gap-3 lg:grid-cols-2">
        <Snippet title="At the command line" text={command} />
        <Snippet title="In Python" text={script} />
      </div>
    </Section>
  );
}

function Snippet({ title, text }: { title: string; text: string }) {
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <div className="flex items-center gap-2">
        <h3 className="text-dim">{title}</h3>
        <Copy text={text} />
      </div>
      <Text text={text} />
    </div>
  );
}

function Text({ text }: { text: string }) {
  return (
    <pre
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
      tabIndex={0}
      className="overflow-x-auto rounded-md border border-line bg-sunken p-3 font-mono text-sm"
    >
      {text}
    </pre>
  );
}
