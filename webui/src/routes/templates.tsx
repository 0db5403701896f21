/** Templates: settings that several configurations share. The one that is open stands in the address. */

import { getRouteApi, Link } from "@tanstack/react-router";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { useLive } from "../services/live";
import { type Template, templatesQuery } from "../services/templates";
import { Button } from "../ui/Button";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page } from "../ui/Page";
import { SearchField } from "../ui/SearchField";
import { Table } from "../ui/Table";
import { Moment } from "../ui/values";
import { visible } from "../visible";
import { NewTemplate } from "./templates/New";
import { OneTemplate } from "./templates/One";

const route = getRouteApi("/shell/templates");

export function TemplatesPage() {
  const { name, new: isNew } = route.useSearch();
  if (isNew) return <NewTemplate />;
  return name === undefined ? <All /> : <OneTemplate key={name} name={name} />;
}

function All() {
  const { q } = route.useSearch();
  const navigate = route.useNavigate();
  const found = useLive(templatesQuery(q));
  const create = () => void navigate({ search: { new: true } });
  useCommands([{ title: "Create a template", run: create }]);
  return (
    <Page
      title="Templates"
      name="Templates"
      aside={
        <>
          <SearchField
            label="Part of the name"
            value={q ?? ""}
            onChange={(to) => void navigate({ search: { q: to || undefined }, replace: true })}
          />
          <Button onClick={create}>New template</Button>
        </>
      }
    >
      {found.error && !found.data ? (
        <Problem error={found.error} retry={() => void found.refetch()} />
      ) : !found.data ? (
        <Loading what="templates" />
      ) : found.data.rows.length === 0 ? (
        <Empty title={q ? "No matching templates" : "No templates yet"} command="tenax template create NAME FILE">
          What several configurations have in common: they name a template, and it supplies what they do not set. At the
          command line:
        </Empty>
      ) : (
        <>
          <Table label="Templates" columns={COLUMNS} rows={found.data.rows} keyOf={(template) => template.name} />
          {found.data.total > found.data.rows.length && (
            <p className="text-dim">
              The first {count(found.data.rows.length)} of {count(found.data.total)} templates, by name.
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
    title: "Template",
    wide: true,
    cell: (template: Template) => (
      <Link to="/templates" search={{ name: template.name }} className="hover:underline" title={visible(template.name)}>
        {visible(template.name)}
      </Link>
    ),
  },
  {
    id: "sets",
    title: "Sets",
    wide: true,
    cell: (template: Template) => {
      const sets = visible(Object.keys(template.config).join(", "));
      return <span title={sets}>{sets || "–"}</span>;
    },
  },
  {
    id: "workspace",
    title: "Workspace",
    wide: true,
    cell: (template: Template) => visible(template.workspaceName || "–"),
  },
  { id: "owner", title: "Owner", cell: (template: Template) => visible(template.username || "–") },
  { id: "changed", title: "Changed", cell: (template: Template) => <Moment at={template.modifiedAt} /> },
];
