/** What all charts have: a title, a summary in words, and their numbers as a table for whoever asks. */

import { type ReactNode, useId, useState } from "react";
import { visible } from "../visible";

export interface FigureTable {
  head: string[];
  rows: { key: string | number; cells: ReactNode[] }[];
}

interface FigureProps {
  title: string;
  /** The chart in a sentence. */
  summary: string;
  table: () => FigureTable;
  aside?: ReactNode;
  children: ReactNode;
}

export function Figure({ title, summary, table, aside, children }: FigureProps) {
  const [asTable, setAsTable] = useState(false);
  const id = useId();
  return (
    <figure
      className="min-w-0 rounded-md border border-line p-2"
      aria-labelledby={id}
      aria-describedby={`${id}-summary`}
    >
      <figcaption className="flex min-w-0 flex-wrap items-center gap-x-3 px-1 pb-1">
        <span id={id} className="min-w-[min(8rem,100%)] flex-1 truncate font-medium" title={visible(title)}>
          {visible(title)}
        </span>
        {aside}
        <button
          type="button"
          aria-pressed={asTable}
          aria-label={`View as table: ${visible(title)}`}
          className="min-h-6 rounded-md px-1.5 text-dim text-sm hover:bg-hover hover:text-text"
          onClick={() => setAsTable(!asTable)}
        >
          Table
        </button>
        <span id={`${id}-summary`} className="sr-only">
          {visible(summary)}
        </span>
      </figcaption>
      {asTable ? <Numbers label={title} {...table()} /> : children}
    </figure>
  );
}

function Numbers({ label, head, rows }: FigureTable & { label: string }) {
  return (
    <section
      aria-label={`${visible(label)}, as a table`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
      tabIndex={0}
      className="max-h-60 overflow-auto"
    >
      <table className="w-full border-collapse">
        <thead>
          <tr className="border-line border-b text-left text-dim text-sm">
            {head.map((title) => (
              <th key={title} scope="col" className="px-2 font-medium">
                {visible(title)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key} className="border-line border-b last:border-b-0">
              {row.cells.map((cell, place) => (
                <td key={head[place]} className="max-w-80 truncate px-2">
                  {typeof cell === "string" ? visible(cell) : cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
