import type { ReactNode } from "react";
// The height of its rows.
import "../density";

interface TableColumn<R> {
  id: string;
  title: ReactNode;
  align?: "right";
  /** Takes what is left, and is cut there. */
  wide?: boolean;
  /** The same, and gives way on a phone. */
  name?: boolean;
  /** Takes what is left, and wraps. */
  wraps?: boolean;
  cell: (row: R) => ReactNode;
  /** How it is sorted by it. */
  sorted?: "ascending" | "descending" | "none";
}

const WIDTHS = {
  fit: "whitespace-nowrap",
  name: "min-w-24 max-w-0 truncate",
  wide: "min-w-40 max-w-0 truncate",
  wraps: "min-w-72 py-1.5 break-words",
};

/** A short table, all of it in the document. */
export function Table<R>(props: {
  label: string;
  columns: TableColumn<R>[];
  rows: R[];
  keyOf: (row: R) => string | number;
  /** The key of the row that keys act on. */
  current?: string | number;
}) {
  return (
    <section
      aria-label={props.label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
      tabIndex={0}
      className="overflow-x-auto rounded-md border border-line"
    >
      <table className="w-full border-collapse">
        <thead>
          <tr className="border-line border-b bg-raised text-left text-dim text-sm">
            {props.columns.map((column) => (
              <th
                key={column.id}
                scope="col"
                aria-sort={column.sorted}
                className={`h-[30px] whitespace-nowrap px-2 font-medium ${column.align === "right" ? "text-right" : ""}`}
              >
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr
              key={props.keyOf(row)}
              aria-current={props.current !== undefined && props.current === props.keyOf(row) ? true : undefined}
              className="border-line border-b last:border-b-0 hover:bg-hover aria-[current]:bg-hover aria-[current]:shadow-[inset_3px_0_0_var(--accent)]"
            >
              {props.columns.map((column) => (
                <td
                  key={column.id}
                  className={`h-(--row) px-2 ${column.align === "right" ? "text-right" : ""} ${WIDTHS[column.wraps ? "wraps" : column.wide ? "wide" : column.name ? "name" : "fit"]}`}
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
