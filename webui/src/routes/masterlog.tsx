/** The log of the master that answers, for administrators: what it keeps of it, and what comes. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { count } from "../format";
import { LEVELS } from "../output/levels";
import { followMaster } from "../services/masterlog";
import type { OutputLine } from "../services/output";
import { meQuery } from "../services/session";
import { FIELD } from "../ui/Button";
import { Log } from "../ui/Log";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page } from "../ui/Page";
import { SearchField } from "../ui/SearchField";

const route = getRouteApi("/shell/master/logs");
/** Lines that are kept here; a long traceback has some. */
const KEPT = 20_000;
/** After a stream that broke, another. */
const AGAIN_MS = 2000;

export function MasterLogPage() {
  const me = useSuspenseQuery(meQuery).data;
  return (
    <Page
      title={
        <>
          <Link to="/cluster" search={{}} className="underline decoration-line hover:decoration-current">
            Cluster
          </Link>
          {" / master's log"}
        </>
      }
      name="Master's log"
      full
    >
      {me.admin ? (
        <MasterLog />
      ) : (
        <p>Only administrators can see the master's log. The output of a trial or a task is on its own page.</p>
      )}
    </Page>
  );
}

function MasterLog() {
  const { q = "", level } = route.useSearch();
  const navigate = route.useNavigate();
  const { lines, error } = useMasterLog();
  const shown = useMemo(() => {
    const least = level ? LEVELS.indexOf(level) : 0;
    const part = q.toLowerCase();
    return (lines ?? []).filter(
      (line) => LEVELS.indexOf(line.level) >= least && (part === "" || line.text.toLowerCase().includes(part)),
    );
  }, [lines, level, q]);
  if (!lines) return error ? <Problem error={error} /> : <Loading what="the log" />;
  if (lines.length === 0) {
    return (
      <Empty title="The log is empty" command="tenax master config set --log-level info">
        New lines appear here. With a lower level it logs more, until it is restarted:
      </Empty>
    );
  }
  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        <SearchField
          label="Part of a line"
          value={q}
          onChange={(to) => void navigate({ search: (former) => ({ ...former, q: to || undefined }), replace: true })}
        />
        <select
          aria-label="Level"
          className={FIELD}
          value={level ?? ""}
          onChange={(event) => {
            const to = event.target.value || undefined;
            void navigate({ search: (former) => ({ ...former, level: to }), replace: true });
          }}
        >
          <option value="">Any level</option>
          {LEVELS.slice(1).map((each) => (
            <option key={each} value={each}>
              {each} up
            </option>
          ))}
        </select>
        <span role="status" aria-label="Lines shown" className="text-dim">
          {shown.length < lines.length
            ? `${count(shown.length)} of ${count(lines.length)} lines`
            : `${count(lines.length)} ${lines.length === 1 ? "line" : "lines"}`}
        </span>
        {error !== undefined && <span className="text-bad">Not followed now: {messageOf(error)}</span>}
      </div>
      {shown.length === 0 ? (
        <Empty title="No matching lines" />
      ) : (
        <Log lines={shown} label="Log of the master" className="flex-1" />
      )}
    </>
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** All that the master keeps, and what it says meanwhile. A tab that is hidden hears nothing; shown again it begins anew, as
 *  it does with another master. */
function useMasterLog(): { lines: OutputLine[] | undefined; error: unknown } {
  const [lines, setLines] = useState<OutputLine[]>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let control = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const follow = async () => {
      const mine = new AbortController();
      control = mine;
      let known: OutputLine[] = [];
      let wanted = 0;
      const hear = (all: OutputLine[]) => {
        known = all.slice(-KEPT);
        setError(undefined);
        // What comes in one frame is drawn at once.
        cancelAnimationFrame(wanted);
        wanted = requestAnimationFrame(() => mine.signal.aborted || setLines(known));
      };
      try {
        await followMaster(hear, (more) => hear([...known, ...more]), mine.signal);
      } catch (failure) {
        if (!mine.signal.aborted) setError(failure);
      }
      if (!mine.signal.aborted) timer = setTimeout(() => void follow(), AGAIN_MS);
    };
    const turned = () => {
      control.abort();
      clearTimeout(timer);
      if (!document.hidden) void follow();
    };
    document.addEventListener("visibilitychange", turned);
    turned();
    return () => {
      document.removeEventListener("visibilitychange", turned);
      control.abort();
      clearTimeout(timer);
    };
  }, []);
  return { lines, error };
}
