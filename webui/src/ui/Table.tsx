import { Fragment, type ReactNode, useSyncExternalStore } from "react";
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
  /** On a phone it stands below the other columns, as wide as the screen, for rows of which it has something to say. */
  below?: (row: R) => boolean;
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

const PHONE = matchMedia("(max-width: 639px)");

/** Whether this is as narrow as a phone, now and when that changes. */
function usePhone(): boolean {
  return useSyncExternalStore(
    (changed) => {
      PHONE.addEventListener("change", changed);
      return () => PHONE.removeEventListener("change", changed);
    },
    () => PHONE.matches,
  );
}

/** A short table, all of it in the document. */
export function Table<R>(props: {
  label: string;
  columns: TableColumn<R>[];
  rows: R[];
  keyOf: (row: R) => string | number;
  /** The key of the row that keys act on. */
  current?: string | number;
}) {
  const phone = usePhone();
  const across = phone ? props.columns.filter((column) => !column.below) : props.columns;
  const below = phone ? props.columns.filter((column) => column.below) : [];
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
            {across.map((column) => (
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
          {props.rows.map((row) => {
            const current = props.current !== undefined && props.current === props.keyOf(row) ? true : undefined;
            const said = below.filter((column) => column.below?.(row));
            return (
              <Fragment key={props.keyOf(row)}>
                <tr
                  aria-current={current}
                  className={`${said.length > 0 ? "" : "border-line border-b last:border-b-0"} hover:bg-hover aria-[current]:bg-hover aria-[current]:shadow-[inset_3px_0_0_var(--accent)]`}
                >
                  {across.map((column) => (
                    <td
                      key={column.id}
                      className={`h-(--row) px-2 ${column.align === "right" ? "text-right" : ""} ${WIDTHS[column.wraps ? "wraps" : column.wide ? "wide" : column.name ? "name" : "fit"]}`}
                    >
                      {column.cell(row)}
                    </td>
                  ))}
                </tr>
                {said.map((column) => (
                  <tr key={column.id} className="border-line border-b last:border-b-0">
                    <td colSpan={across.length} className="p-0">
                      <div className="sticky left-0 w-[calc(100vw-2.25rem)] px-2 pb-2 break-words">
                        <span className="sr-only">{column.title}: </span>
                        {column.cell(row)}
                      </div>
                    </td>
                  </tr>
                ))}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
