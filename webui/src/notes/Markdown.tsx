/** Shows Markdown. All of it are elements of ours with text in them: nothing that was written becomes HTML. */

import { type ReactNode, useMemo } from "react";
import { type Block, type Inline, markdown } from "./markdown";

export function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => markdown(text), [text]);
  return <div className="flex min-w-0 max-w-[80ch] flex-col gap-3 break-words">{blocks.map(block)}</div>;
}

const SIZES = ["text-lg", "text-lg", "text-base"];

function block(of: Block, place: number): ReactNode {
  switch (of.kind) {
    case "heading":
      return (
        // Below the heading of the note itself.
        <p
          key={place}
          role="heading"
          aria-level={Math.min(6, of.level + 2)}
          className={`font-semibold ${SIZES[of.level - 1] ?? ""}`}
        >
          {of.of.map(inline)}
        </p>
      );
    case "paragraph":
      return (
        <p key={place} className="whitespace-pre-line">
          {of.of.map(inline)}
        </p>
      );
    case "code":
      return (
        <pre
          key={place}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
          tabIndex={0}
          className="overflow-x-auto rounded-md border border-line bg-sunken p-2 font-mono text-sm"
        >
          {of.text}
        </pre>
      );
    case "quote":
      return (
        <blockquote key={place} className="flex flex-col gap-3 border-line border-l-2 pl-3 text-dim">
          {of.of.map(block)}
        </blockquote>
      );
    case "list": {
      const List = of.ordered ? "ol" : "ul";
      return (
        <List
          key={place}
          start={of.ordered ? of.start : undefined}
          className={`flex flex-col gap-1 pl-6 ${of.ordered ? "list-decimal" : "list-disc"}`}
        >
          {of.items.map((item, at) => (
            <li key={at}>{item.map(block)}</li>
          ))}
        </List>
      );
    }
    case "table":
      return <Rows key={place} head={of.head} rows={of.rows} />;
    case "rule":
      return <hr key={place} className="border-line" />;
  }
}

function Rows({ head, rows }: { head: Inline[][]; rows: Inline[][][] }) {
  const cell = "border border-line px-2 py-1 text-left align-top";
  return (
    <section
      aria-label="Table"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
      tabIndex={0}
      className="overflow-x-auto"
    >
      <table className="border-collapse">
        <thead>
          <tr>
            {head.map((each, at) => (
              <th key={at} scope="col" className={`${cell} font-medium`}>
                {each.map(inline)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((each, column) => (
                <td key={column} className={cell}>
                  {each.map(inline)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function inline(of: Inline, place: number): ReactNode {
  switch (of.kind) {
    case "text":
      return of.text;
    case "code":
      return (
        <code key={place} className="rounded bg-sunken px-1 font-mono text-sm">
          {of.text}
        </code>
      );
    case "strong":
      return <strong key={place}>{of.of.map(inline)}</strong>;
    case "emphasis":
      return <em key={place}>{of.of.map(inline)}</em>;
    case "struck":
      return <s key={place}>{of.of.map(inline)}</s>;
    case "link":
      return (
        <a key={place} href={of.to} target="_blank" rel="noreferrer noopener" className="text-accent underline">
          {of.of.map(inline)}
        </a>
      );
  }
}
