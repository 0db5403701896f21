/** The output of a trial or another task: its newest lines at once, any other by number, search, filters and keys. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { count } from "../format";
import { useCommands } from "../keys/commands";
import { useLive } from "../services/live";
import { fieldsQuery, type LineFilter, nextError, tailQuery, type Writer } from "../services/output";
import { Button, FIELD } from "../ui/Button";
import { Empty, Loading, Problem } from "../ui/notices";
import { SearchField } from "../ui/SearchField";
import { Histogram } from "./Histogram";
import { LEVELS } from "./levels";
import { useHits, useLines } from "./lines";
import { View } from "./View";

/** What of the output stands in the address. */
export interface OutputSearch {
  q?: string;
  re?: boolean;
  level?: string;
  rank?: string;
  source?: string;
  line?: number;
}

function narrowed(search: OutputSearch): LineFilter | undefined {
  if (!search.level && !search.rank && !search.source) return undefined;
  return {
    levels: search.level ? LEVELS.slice(LEVELS.indexOf(search.level)) : undefined,
    ranks: search.rank ? [Number(search.rank)] : undefined,
    sources: search.source ? [search.source] : undefined,
  };
}

function kept(name: string): [boolean, (on: boolean) => void] {
  const [on, set] = useState(localStorage.getItem(name) === "1");
  return [
    on,
    (to) => {
      localStorage.setItem(name, to ? "1" : "0");
      set(to);
    },
  ];
}

export function Output({ of, ended }: { of: Writer; ended: boolean }) {
  const noun = typeof of === "number" ? "trial" : "task";
  const search = useSearch({ strict: false }) as OutputSearch;
  const navigate = useNavigate();
  const put = (change: Partial<OutputSearch>) =>
    void navigate({ to: ".", search: (former: object) => ({ ...former, ...change }), replace: true } as never);
  const tail = useLive(tailQuery(of), () => ended);
  const fields = useQuery(fieldsQuery(of)).data;
  const total = tail.data?.total ?? 0;
  const lines = useLines(of, tail.data);
  const filter = narrowed(search);
  const rows = useHits(of, filter, total);
  const hits = useHits(of, search.q ? { ...filter, text: search.q, regex: search.re } : undefined, total);
  const [follows, setFollows] = useState(search.line === undefined);
  const [target, setTarget] = useState<{ place: number }>();
  const [wrap, setWrap] = kept("tenax-wrap");
  const [utc, setUtc] = kept("tenax-utc");
  const [cursor, setCursor] = useState(-1);
  const marked = search.line === undefined ? undefined : search.line - 1;
  const loaded = tail.data !== undefined;
  const all = rows ? rows.ranges.count : total;
  const go = (number: number) => {
    setFollows(false);
    setTarget({ place: Math.min(Math.max(0, all - 1), rows ? rows.ranges.below(number) : number) });
  };
  const mark = (number: number) => {
    put({ line: number + 1 });
    go(number);
  };
  // The line of the address, once it is known how many there are.
  useEffect(() => {
    if (loaded && marked !== undefined && (rows === undefined || rows.done)) go(marked);
  }, [loaded, marked, rows?.done, search.level, search.rank, search.source]);
  useEffect(() => setCursor(-1), [hits?.key]);
  const hit = (step: number) => {
    const number = hits?.ranges.count ?? 0;
    if (number === 0) return;
    // Before the first step one stands behind the last hit: the newest are in view.
    const place = cursor < 0 ? (step > 0 ? 0 : number - 1) : (cursor + step + number) % number;
    setCursor(place);
    mark(hits?.ranges.at(place) ?? 0);
  };
  const error = async () => {
    const after = await nextError(of, filter ?? {}, marked === undefined ? 0 : marked + 1);
    const number = after ?? (await nextError(of, filter ?? {}, 0));
    if (number !== undefined) mark(number);
  };
  useCommands([
    { name: "follow", run: () => setFollows(true) },
    { name: "searchOutput", run: focusSearch },
    { name: "nextHit", run: () => hit(1) },
    { name: "previousHit", run: () => hit(-1) },
    { name: "nextError", run: () => void error() },
  ]);
  const unfinished = useMemo(() => (filter ? [] : (tail.data?.unfinished ?? [])), [tail.data, filter === undefined]);
  if (tail.error && !tail.data) return <Problem error={tail.error} retry={() => void tail.refetch()} />;
  if (!tail.data) return <Loading what="output" />;
  if (total + unfinished.length === 0) {
    return (
      <Empty title="No output yet" command={`tenax ${noun} logs -f ${of}`}>
        Its output appears here, and at the command line:
      </Empty>
    );
  }
  return (
    <div className="flex min-h-0 flex-1 flex-col gap-2">
      <Histogram of={of} total={total} go={go} />
      <div className="flex flex-wrap items-center gap-2">
        <span id="output-search">
          <SearchField value={search.q ?? ""} label="Search the output" onChange={(q) => put({ q: q || undefined })} />
        </span>
        <Toggle label="Regex" on={search.re ?? false} set={(re) => put({ re: re || undefined })} />
        {hits && (
          <>
            <output aria-label="Hits" className={hits.error ? "text-bad" : "text-dim"}>
              {hits.error instanceof Error
                ? hits.error.message
                : `${cursor < 0 ? "" : `${count(cursor + 1)} of `}${count(hits.ranges.count)}${hits.done ? "" : "…"} hits`}
            </output>
            <Button onClick={() => hit(-1)} aria-label="Previous hit" title="N">
              ↑
            </Button>
            <Button onClick={() => hit(1)} aria-label="Next hit" title="n">
              ↓
            </Button>
          </>
        )}
        <Choice
          label="Level"
          value={search.level}
          of={LEVELS}
          set={(level) => put({ level })}
          word={(l) => `${l} up`}
        />
        {(fields?.ranks.length ?? 0) > 1 && (
          <Choice
            label="Rank"
            value={search.rank}
            of={fields?.ranks.map(String) ?? []}
            set={(rank) => put({ rank })}
            word={(rank) => `rank ${rank}`}
          />
        )}
        {(fields?.sources.length ?? 0) > 1 && (
          <Choice label="Source" value={search.source} of={fields?.sources ?? []} set={(source) => put({ source })} />
        )}
        <Button onClick={() => void error()} title="e">
          Next error
        </Button>
        <Toggle label="Wrap" on={wrap} set={setWrap} />
        <Toggle label="UTC" on={utc} set={setUtc} />
        <Toggle label="Follow" on={follows} set={setFollows} />
        <span className="text-dim">{count(all)} lines</span>
      </div>
      <View
        key={`${rows?.key ?? ""}${wrap}`}
        label={`Output of ${noun} ${of}`}
        count={all}
        numberAt={rows ? (place) => rows.ranges.at(place) : (place) => (place < total ? place : undefined)}
        get={lines.get}
        ensure={lines.ensure}
        unfinished={unfinished}
        follows={follows}
        setFollows={setFollows}
        target={target}
        marked={marked}
        isHit={(number) => hits?.ranges.has(number) ?? false}
        text={search.re ? "" : (search.q ?? "")}
        wrap={wrap}
        utc={utc}
        pick={(number) => put({ line: number + 1 })}
      />
    </div>
  );
}

function focusSearch() {
  document.querySelector<HTMLInputElement>("#output-search input")?.focus();
}

function Toggle({ label, on, set }: { label: string; on: boolean; set: (on: boolean) => void }) {
  return (
    <Button aria-pressed={on} onClick={() => set(!on)} className={on ? "border-accent" : ""}>
      {label}
    </Button>
  );
}

function Choice(props: {
  label: string;
  value: string | undefined;
  of: string[];
  set: (value: string | undefined) => void;
  word?: (value: string) => string;
}) {
  return (
    <select
      aria-label={props.label}
      className={FIELD}
      value={props.value ?? ""}
      onChange={(event) => props.set(event.target.value || undefined)}
    >
      <option value="">Any {props.label.toLowerCase()}</option>
      {props.of.map((value) => (
        <option key={value} value={value}>
          {props.word?.(value) ?? value}
        </option>
      ))}
    </select>
  );
}
