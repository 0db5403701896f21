/** The code of an experiment: its files as a tree, one of them with numbered lines; text is shown as text, whatever it says, and nothing of it hides. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import { bytes, count } from "../../format";
import {
  archiveAddress,
  type FileNode,
  fileAddress,
  fileQuery,
  filesOf,
  MAX_SHOWN,
  treeQuery,
} from "../../services/code";
import type { Trial } from "../../services/experiments";
import { Copy } from "../../ui/Copy";
import { Empty, Loading, Problem } from "../../ui/notices";
import { visible } from "../../visible";

const LINE_PX = 18;
const LINK = "text-accent underline";

export function Code({ trial, file }: { trial: Trial; file?: string }) {
  const tree = useQuery(treeQuery(trial.experimentId));
  if (tree.error) return <Problem error={tree.error} retry={() => void tree.refetch()} />;
  if (!tree.data) return <Loading what="the code" />;
  const files = filesOf(tree.data);
  if (files.length === 0) return <Empty title="It was submitted without code" />;
  const chosen = files.find((each) => each.path === file) ?? (file === undefined ? files[0] : undefined);
  return (
    <div className="flex min-w-0 flex-col gap-3">
      <p className="flex flex-wrap gap-x-4 gap-y-1">
        <span className="text-dim">
          {count(files.length)} {files.length === 1 ? "file" : "files"} of experiment {trial.experimentId}
        </span>
        <a href={archiveAddress(trial.experimentId)} download className={LINK}>
          Download all of it
        </a>
        <Link to="/experiments/new" search={{ fork: trial.experimentId }} className={LINK}>
          Fork from here
        </Link>
      </p>
      <div className="grid min-w-0 gap-3 md:grid-cols-[minmax(180px,260px)_minmax(0,1fr)]">
        <nav aria-label="Files" className="max-h-[70vh] overflow-y-auto rounded-md border border-line p-2">
          <Nodes nodes={tree.data} trialId={trial.id} chosen={chosen?.path} />
        </nav>
        {chosen ? (
          <File key={chosen.path} experimentId={trial.experimentId} file={chosen} />
        ) : (
          <Empty title="There is no such file">Choose one of the files listed.</Empty>
        )}
      </div>
    </div>
  );
}

function Nodes({ nodes, trialId, chosen }: { nodes: FileNode[]; trialId: number; chosen?: string }) {
  return (
    <ul className="flex min-w-0 flex-col">
      {nodes.map((node) => (
        <li key={node.path} className="min-w-0">
          {node.isDir ? (
            <details open>
              <summary className="min-h-6 truncate text-dim" title={visible(node.path)}>
                {visible(node.name)}/
              </summary>
              <div className="pl-3">
                <Nodes nodes={node.files ?? []} trialId={trialId} chosen={chosen} />
              </div>
            </details>
          ) : (
            <Link
              to="/trials/$trialId"
              params={{ trialId }}
              search={{ tab: "code", file: node.path }}
              aria-current={node.path === chosen ? "page" : undefined}
              title={visible(node.path)}
              className={`block min-h-6 truncate rounded-sm px-1 hover:bg-hover ${node.path === chosen ? "bg-selected font-medium" : ""}`}
            >
              {visible(node.name)}
            </Link>
          )}
        </li>
      ))}
    </ul>
  );
}

function File({ experimentId, file }: { experimentId: number; file: FileNode }) {
  const size = Number(file.contentLength ?? 0);
  const shown = useQuery({ ...fileQuery(experimentId, file.path), enabled: size <= MAX_SHOWN });
  const text = shown.data?.text;
  return (
    <section aria-label={file.path} className="flex min-w-0 flex-col gap-2">
      <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
        <h2 className="min-w-0 break-words font-mono">{visible(file.path)}</h2>
        <span className="text-dim">{bytes(size)}</span>
        <a href={fileAddress(experimentId, file.path)} download={file.name} className={LINK}>
          Download
        </a>
        {text !== undefined && <Copy text={text} />}
      </div>
      {size > MAX_SHOWN ? (
        <Empty title={`It is larger than ${bytes(MAX_SHOWN)}`}>Download it to see what is in it.</Empty>
      ) : shown.error ? (
        <Problem error={shown.error} retry={() => void shown.refetch()} />
      ) : !shown.data ? (
        <Loading what="the file" />
      ) : text === undefined ? (
        <Empty title="It is not text">Download it to see what is in it.</Empty>
      ) : (
        <Lines text={text} name={file.path} />
      )}
    </section>
  );
}

function Lines({ text, name }: { text: string; name: string }) {
  const scroller = useRef<HTMLElement>(null);
  const lines = text.replace(/\r?\n$/, "").split(/\r?\n/);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 30,
  });
  const digits = String(lines.length).length;
  return (
    <section
      ref={scroller}
      aria-label={`Contents of ${name}`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
      tabIndex={0}
      className="max-h-[70vh] overflow-auto rounded-md border border-line bg-sunken font-mono text-sm"
    >
      <div style={{ height: rows.getTotalSize() }} className="relative min-w-max">
        {rows.getVirtualItems().map((row) => (
          <div
            key={row.key}
            style={{ height: LINE_PX, transform: `translateY(${row.start}px)` }}
            className="absolute top-0 left-0 flex whitespace-pre"
          >
            <span
              aria-hidden="true"
              style={{ width: `${digits + 2}ch` }}
              className="shrink-0 select-none pr-2 text-right text-dim"
            >
              {row.index + 1}
            </span>
            <span>{visible(lines[row.index] ?? "")}</span>
          </div>
        ))}
      </div>
    </section>
  );
}
