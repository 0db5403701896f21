/** The model registry: all models. */

import { useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { count } from "../format";
import { lazy } from "../parts";
import { useLive } from "../services/live";
import { type Model, modelsQuery } from "../services/models";
import { Button } from "../ui/Button";
import { Empty, Loading, Problem } from "../ui/notices";
import { openDialog } from "../ui/overlays";
import { Page } from "../ui/Page";
import { SearchField } from "../ui/SearchField";
import { Table } from "../ui/Table";
import { Moment } from "../ui/values";

const ModelDialog = lazy(() => import("../actions/ModelDialog"));
const route = getRouteApi("/shell/models");

export function ModelsPage() {
  const { q, archived } = route.useSearch();
  const navigate = useNavigate();
  const client = useQueryClient();
  const models = useLive(modelsQuery({ name: q, archived }));
  const create = () =>
    openDialog((close) => (
      <ModelDialog
        onClose={close}
        onDone={(model) => {
          void client.invalidateQueries({ queryKey: ["models"] });
          void navigate({ to: "/models/$name", params: { name: String(model.id) } });
        }}
      />
    ));
  return (
    <Page
      title="Models"
      name="Models"
      aside={
        <>
          <SearchField
            label="Part of the name"
            value={q ?? ""}
            onChange={(to) => void navigate({ to: "/models", search: { archived, q: to || undefined }, replace: true })}
          />
          <label className="flex min-h-7 items-center gap-1.5">
            <input
              type="checkbox"
              checked={archived ?? false}
              onChange={(event) =>
                void navigate({ to: "/models", search: { q, archived: event.target.checked || undefined } })
              }
            />
            Include archived
          </label>
          <Button onClick={create}>New model</Button>
        </>
      }
    >
      {models.error && !models.data ? (
        <Problem error={models.error} retry={() => void models.refetch()} />
      ) : !models.data ? (
        <Loading what="models" />
      ) : models.data.rows.length === 0 ? (
        <Empty
          title={q ? "No matching models" : archived ? "No models yet" : "No active models"}
          command="tenax model create NAME"
        >
          A model collects checkpoints under a name, as its versions. At the command line:
        </Empty>
      ) : (
        <>
          <Table label="Models" columns={COLUMNS} rows={models.data.rows} keyOf={(model) => model.id} />
          {models.data.total > models.data.rows.length && (
            <p className="text-dim">
              The newest {count(models.data.rows.length)} of {count(models.data.total)}.
            </p>
          )}
        </>
      )}
    </Page>
  );
}

const COLUMNS = [
  {
    id: "name",
    title: "Model",
    wide: true,
    cell: (model: Model) => (
      <Link to="/models/$name" params={{ name: String(model.id) }} className="hover:underline" title={model.name}>
        {model.name}
      </Link>
    ),
  },
  { id: "versions", title: "Versions", align: "right" as const, cell: (model: Model) => count(model.numVersions) },
  { id: "description", title: "Description", wide: true, cell: (model: Model) => model.description || "–" },
  { id: "owner", title: "Owner", cell: (model: Model) => model.username },
  { id: "state", title: "State", cell: (model: Model) => (model.archived ? "archived" : "open") },
  { id: "updated", title: "Changed", cell: (model: Model) => <Moment at={model.lastUpdatedTime} /> },
];
