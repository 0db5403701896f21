/** A filter, an order and columns under a name: kept for who named them; its link shows the same to everybody. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { ListSearch } from "../../addresses";
import { dropView, keepView, type NamedView } from "../../services/settings";
import { FIELD } from "../../ui/Button";
import { Field } from "../../ui/Field";
import { FormDialog } from "../../ui/FormDialog";
import { Menu, MenuItem, MenuLine } from "../../ui/Menu";
import { closeDialog, openDialog, say } from "../../ui/overlays";

const MAX_NAME = 100;

interface ViewsProps {
  views: NamedView[];
  projectId?: number;
  /** What is shown, whole. */
  shown: ListSearch;
  onOpen: (search: ListSearch) => void;
}

export function Views({ views, projectId, shown, onOpen }: ViewsProps) {
  const client = useQueryClient();
  const same = JSON.stringify(shown);
  const current = views.find((view) => JSON.stringify(view.search) === same);
  const name = (view: NamedView, title: string) =>
    openDialog((close) => (
      <NameDialog
        title={title}
        name={view.name}
        onClose={close}
        onName={async (chosen) => {
          await keepView(client, projectId, { ...view, name: chosen });
          // What it is called stands in no address: it shows what it holds.
          onOpen(view.search);
        }}
      />
    ));
  const drop = async (view: NamedView) => {
    try {
      await dropView(client, projectId, view.id);
      say({ text: `Deleted the view ${view.name}`, undo: () => void keepView(client, projectId, view) });
    } catch (error) {
      say({ text: error instanceof Error ? error.message : String(error) });
    }
  };
  return (
    <Menu framed label="Views" trigger={<span className="max-w-40 truncate">{current?.name ?? "Views"} ▾</span>}>
      {views.map((view) => (
        <MenuItem key={view.id} onSelect={() => onOpen(view.search)}>
          {view === current ? `✓ ${view.name}` : view.name}
        </MenuItem>
      ))}
      {views.length > 0 && <MenuLine />}
      <MenuItem onSelect={() => name({ id: freshId(), name: "", search: shown }, "Save view")}>Save view…</MenuItem>
      {current && (
        <>
          <MenuItem onSelect={() => name(current, "Rename view")}>Rename view…</MenuItem>
          <MenuItem danger onSelect={() => void drop(current)}>
            Delete view
          </MenuItem>
        </>
      )}
    </Menu>
  );
}

/** Nothing secret: it tells one view of a person from another. On plain http there is no `crypto.randomUUID`. */
function freshId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function NameDialog(props: {
  title: string;
  name: string;
  onClose: () => void;
  onName: (name: string) => Promise<void>;
}) {
  const [name, setName] = useState(props.name);
  return (
    <FormDialog
      title={props.title}
      yes="Save"
      onClose={props.onClose}
      onSubmit={async () => {
        await props.onName(name.trim());
        closeDialog();
      }}
    >
      <Field label="Name" hint="Its filter, order and columns are kept for you; the address shows them to anyone.">
        {(ids) => (
          <input
            {...ids}
            required
            pattern=".*\S.*"
            maxLength={MAX_NAME}
            className={FIELD}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
    </FormDialog>
  );
}
