import type { ReactNode } from "react";

interface TableColumn<R> {
  id: string;
  title: string;
  align?: "right";
  /** Takes what is left, and is cut there. */
  wide?: boolean;
  cell: (row: R) => ReactNode;
}

/** A short table, all of it in the document. */
export function Table<R>(props: {
  label: string;
  columns: TableColumn<R>[];
  rows: R[];
  keyOf: (row: R) => string | number;
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
                className={`h-[30px] whitespace-nowrap px-2 font-medium ${column.align === "right" ? "text-right" : ""}`}
              >
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.keyOf(row)} className="border-line border-b last:border-b-0 hover:bg-hover">
              {props.columns.map((column) => (
                <td
                  key={column.id}
                  className={`h-8 px-2 ${column.align === "right" ? "text-right" : ""} ${column.wide ? "min-w-40 max-w-0 truncate" : "whitespace-nowrap"}`}
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
