/** One model: what is written about it, and its versions. */

import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Confirm } from "../actions/Confirm";
import { outcome } from "../actions/perform";
import { mayChange } from "../actions/states";
import { count } from "../format";
import { Markdown } from "../notes/Markdown";
import { lazy } from "../parts";
import { useLive } from "../services/live";
import { archiveModel, deleteModel, type Model, type ModelVersion, modelQuery } from "../services/models";
import { meQuery } from "../services/session";
import { Button } from "../ui/Button";
import { Empty, Loading, Problem } from "../ui/notices";
import { closeDialog, openDialog, say } from "../ui/overlays";
import { Page, Section } from "../ui/Page";
import { Table } from "../ui/Table";
import { Moment, Value } from "../ui/values";

const RegisterDialog = lazy(() => import("../actions/RegisterDialog"));
const ModelDialog = lazy(() => import("../actions/ModelDialog"));
const route = getRouteApi("/shell/models/$name");

export function ModelPage() {
  const { name } = route.useParams();
  const navigate = useNavigate();
  const shown = useLive(modelQuery(name));
  const { data } = shown;
  if (!data || (String(data.model.id) !== name && data.model.name !== name)) {
    return (
      <Page title="Model" name="Model">
        {shown.error ? (
          <Problem error={shown.error} retry={() => void shown.refetch()} />
        ) : (
          <Loading what="the model" />
        )}
      </Page>
    );
  }
  const { model, versions, total } = data;
  const register = () =>
    openDialog((close) => (
      <RegisterDialog
        model={model}
        title={`Register a version of ${model.name}`}
        onClose={close}
        onDone={(_, version) =>
          void navigate({ to: "/models/$name/versions/$version", params: { name: String(model.id), version } })
        }
      />
    ));
  return (
    <Page title={model.name} name={model.name} aside={<About model={model} />}>
      {model.description && <p className="break-words">{model.description}</p>}
      {model.notes && (
        <Section title="Notes">
          <Markdown text={model.notes} />
        </Section>
      )}
      <Section title="Versions" aside={!model.archived && <Button onClick={register}>Register a version</Button>}>
        {versions.length === 0 ? (
          <Empty title="No versions yet" command={`tenax model register-version ${model.id} CHECKPOINT`}>
            Register a checkpoint as its first version; it is kept for as long as it is one:
          </Empty>
        ) : (
          <Table label="Versions" columns={COLUMNS} rows={versions} keyOf={(version) => version.version} />
        )}
        {total > versions.length && (
          <p className="text-dim">
            The newest {count(versions.length)} of {count(total)}.
          </p>
        )}
      </Section>
    </Page>
  );
}

function About({ model }: { model: Model }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const me = useSuspenseQuery(meQuery).data;
  const again = () => {
    for (const kind of ["model", "models"]) void client.invalidateQueries({ queryKey: [kind] });
  };
  const archive = async (archived: boolean) => {
    const what = `${archived ? "Archive" : "Unarchive"} model ${model.name}`;
    const done = await outcome(
      archiveModel(model.id, archived).then(() => true),
      what,
    );
    const text = `${archived ? "Archived" : "Unarchived"} model ${model.name}`;
    if (done) say({ text, undo: () => void archive(!archived) });
    again();
  };
  const remove = async () => {
    closeDialog();
    const done = await outcome(
      deleteModel(model).then(() => true),
      `Delete model ${model.name}`,
    );
    if (!done) return;
    say({ text: `Deleted model ${model.name}` });
    await navigate({ to: "/models" });
    again();
  };
  const ask = () =>
    openDialog((close) => (
      <Confirm
        title={`Delete model ${model.name}?`}
        names={[model.name]}
        size={1}
        warning={`Its ${count(model.numVersions)} versions are deleted with it. Their checkpoints stay, and can be deleted from then on.`}
        yes="Delete"
        onYes={() => void remove()}
        onNo={close}
      />
    ));
  return (
    <>
      <p className="text-dim">
        Model {model.id} of {model.username}, changed <Moment at={model.lastUpdatedTime} />
        {model.archived && ", archived"}
      </p>
      {mayChange(me, model.userId) && (
        <>
          {!model.archived && (
            <Button onClick={() => openDialog((close) => <ModelDialog model={model} onClose={close} onDone={again} />)}>
              Edit
            </Button>
          )}
          <Button onClick={() => void archive(!model.archived)}>{model.archived ? "Unarchive" : "Archive"}</Button>
          <Button look="danger" onClick={ask}>
            Delete
          </Button>
        </>
      )}
    </>
  );
}

function From({ version }: { version: ModelVersion }) {
  const trialId = version.checkpoint.training?.trialId;
  if (!trialId) return "–";
  return (
    <Link to="/trials/$trialId" params={{ trialId }} className="underline">
      Trial {trialId}
    </Link>
  );
}

const COLUMNS = [
  {
    id: "version",
    title: "Version",
    align: "right" as const,
    cell: ({ model, version }: ModelVersion) => (
      <Link
        to="/models/$name/versions/$version"
        params={{ name: String(model.id), version }}
        className="inline-flex min-h-6 min-w-6 items-center justify-end underline"
      >
        {version}
      </Link>
    ),
  },
  { id: "name", title: "Name", wide: true, cell: (version: ModelVersion) => version.name || "–" },
  { id: "from", title: "From", cell: (version: ModelVersion) => <From version={version} /> },
  {
    id: "metric",
    title: "Metric",
    align: "right" as const,
    cell: (version: ModelVersion) => (
      <Value value={version.checkpoint.training?.searcherMetric as number | null | undefined} />
    ),
  },
  {
    id: "download",
    title: "Download",
    cell: (version: ModelVersion) => (
      <code className="font-mono text-sm">tenax checkpoint download {version.checkpoint.uuid}</code>
    ),
  },
  { id: "by", title: "Registered by", cell: (version: ModelVersion) => version.username },
  { id: "at", title: "Registered", cell: (version: ModelVersion) => <Moment at={version.creationTime} /> },
  { id: "comment", title: "Comment", wide: true, cell: (version: ModelVersion) => version.comment || "–" },
];
