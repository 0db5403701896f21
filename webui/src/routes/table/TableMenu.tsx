/** What else one does with a table: heat maps, the height of rows, the first of them, all of them as a file. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { save } from "../../csv";
import { type Density, useDensity } from "../../density";
import type { ExperimentSearch } from "../../services/experiments";
import { keepDensity } from "../../services/settings";
import type { Selecting } from "../../ui/Grid";
import { DENSITIES } from "../../ui/heights";
import { Menu, MenuChoices, MenuItem, MenuLine } from "../../ui/Menu";
import { say } from "../../ui/overlays";
import { hasHeat } from "./columns";
import { csvOf } from "./csv";
import type { Columns } from "./useColumns";

const FIRST = [5, 10, 25];

interface TableMenuProps<R extends { id: number }> {
  columns: Columns<R>;
  asked: ExperimentSearch;
  name: string;
  total: number;
  selecting: Selecting<R>;
}

export function TableMenu<R extends { id: number }>({ columns, asked, name, total, selecting }: TableMenuProps<R>) {
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  const density = useDensity();
  const changeDensity = (to: Density) =>
    void keepDensity(client, to).catch((error) =>
      say({ text: `The row height was not saved: ${error instanceof Error ? error.message : error}` }),
    );
  const { placed, projectId, kind } = columns;
  const metrics = projectId === undefined ? [] : placed.filter((each) => hasHeat(each.id));
  const isHeated = metrics.some((each) => each.heat);
  const heat = () =>
    columns.change(
      placed.map(({ heat: _, ...each }) => (!isHeated && hasHeat(each.id) ? { ...each, heat: true } : each)),
    );
  const download = async () => {
    setBusy(true);
    try {
      const ids = placed.map((each) => each.id);
      save(await csvOf(client, kind, asked, ids), `${name.replaceAll(/[^\w-]+/g, "-")}.csv`);
    } catch (error) {
      say({ text: `No file was created: ${error instanceof Error ? error.message : error}` });
    }
    setBusy(false);
  };
  return (
    <Menu framed label="Table" trigger={<>{busy ? "Loading rows…" : "Table"} ▾</>}>
      {FIRST.map((count) => (
        <MenuItem key={count} onSelect={() => selecting.first(count)}>
          Select the first {count}
        </MenuItem>
      ))}
      <MenuLine />
      {metrics.length > 0 && (
        <>
          <MenuItem onSelect={heat}>{isHeated ? "No heat map" : "Heat map of all metrics"}</MenuItem>
          <MenuLine />
        </>
      )}
      <MenuChoices label="Rows" value={density} choices={DENSITIES} onChange={changeDensity} />
      <MenuLine />
      {total > 0 && !busy && <MenuItem onSelect={() => void download()}>Save all rows as CSV</MenuItem>}
    </Menu>
  );
}
