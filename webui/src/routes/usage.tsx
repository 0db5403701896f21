/** Who used the cluster: slot hours of a time by user, project, pool..., as bars and as a table, and what was waited. */

import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { BARS } from "../charts/bars";
import { cell, save } from "../csv";
import { clock, count } from "../format";
import { useCommands } from "../keys/commands";
import { submitCommand } from "../services/experiments";
import { useLive } from "../services/live";
import { projectsQuery } from "../services/projects";
import { meQuery } from "../services/session";
import { TASK_TYPES, type TaskType } from "../services/tasks";
import { type Share, type UsageBy, usageQuery } from "../services/usage";
import { groupsQuery } from "../services/users";
import { Button, FIELD } from "../ui/Button";
import { Chart } from "../ui/Chart";
import { Empty, Loading, Problem } from "../ui/notices";
import { Page } from "../ui/Page";
import { Table } from "../ui/Table";
import { isDay, PERIODS, type PeriodName, USAGE_BY } from "../usage/address";
import { duringOf, filterOf } from "../usage/links";
import { Machines } from "../usage/Machines";
import { Quotas } from "../usage/Quotas";
import {
  apart,
  labelOf,
  periodOf,
  type Span,
  type Sum,
  type Sums,
  sorted,
  spanOf,
  stacks,
  summed,
  usual,
  weekly,
} from "../usage/sums";
import { visible } from "../visible";

const route = getRouteApi("/shell/usage");
/** Names that have bars of their own. */
const MOST_BARS = 8;
/** Rows of the table; the file has all. */
const SHOWN = 200;

const TITLES: Record<UsageBy, string> = {
  user: "User",
  group: "Group",
  workspace: "Workspace",
  project: "Project",
  pool: "Pool",
  agent: "Agent",
  type: "Type",
  size: "Size",
  label: "Label",
};
/** What has no name. */
const NAMELESS: Partial<Record<UsageBy, string>> = {
  group: "In no group",
  workspace: "In no workspace",
  project: "In no project",
};

export function UsagePage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const today = new Date().toISOString().slice(0, 10);
  const span = spanOf(search, today);
  const { by = "user" } = search;
  const per = search.per ?? periodOf(span);
  const me = useSuspenseQuery(meQuery).data;
  const grouped = useLive(groupsQuery).data?.total !== 0;
  const found = useQuery({
    ...usageQuery(by, span.from, span.to, per === "month"),
    // What is shown stays, unless its names would be taken for something else.
    placeholderData: (shown, former) => (former?.queryKey[1] === by ? shown : undefined),
  });
  const shares = useMemo(() => (found.data && per === "week" ? weekly(found.data) : found.data), [found.data, per]);
  const put = (change: Partial<typeof search>) =>
    void navigate({ search: (former) => ({ ...former, ...change }), replace: true });
  return (
    <Page
      title="Usage"
      name="Usage"
      aside={
        <>
          <Days span={span} today={today} put={put} />
          <Choice
            label="By"
            value={by}
            of={USAGE_BY.filter((each) => each !== "group" || grouped || by === "group")}
            set={(to) => put({ by: to, sort: undefined })}
            word={(each) => `By ${TITLES[each].toLowerCase()}`}
          />
          <Choice
            label="Bars"
            value={per}
            of={PERIODS}
            set={(to) => put({ per: to })}
            word={(each) => `One bar per ${each}`}
          />
        </>
      }
    >
      {found.error && !found.data ? (
        <Problem error={found.error} retry={() => void found.refetch()} />
      ) : !shares ? (
        <Loading what="the usage" />
      ) : (
        <Usage shares={shares} by={by} per={per} span={span} stale={found.isPlaceholderData} />
      )}
      <Machines by={by} span={span} />
      <Quotas />
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-dim">
        <span>
          Days are in UTC. A slot counts from its placement until its container ends. Time waited is from the request to
          the placement, for what was placed
          {me.admin ? "." : ". Everyone who can log in sees everyone's usage."}
        </span>
        {found.dataUpdatedAt > 0 && (
          <span className="inline-flex items-center gap-2">
            As of {clock(new Date(found.dataUpdatedAt).toISOString())}
            <Button onClick={() => void found.refetch()}>Refresh</Button>
          </span>
        )}
      </p>
    </Page>
  );
}

function Choice<T extends string>(props: {
  label: string;
  value: T;
  of: readonly T[];
  set: (value: T) => void;
  word: (value: T) => string;
}) {
  return (
    <select
      aria-label={props.label}
      className={FIELD}
      value={props.value}
      onChange={(event) => props.set(event.target.value as T)}
    >
      {props.of.map((value) => (
        <option key={value} value={value}>
          {props.word(value)}
        </option>
      ))}
    </select>
  );
}

function Days({ span, today, put }: { span: Span; today: string; put: (change: Partial<Span>) => void }) {
  const known = usual(today);
  const chosen = Object.keys(known).find((name) => known[name]?.from === span.from && known[name]?.to === span.to);
  const field = (label: string, end: keyof Span) => (
    <label className="inline-flex items-center gap-1.5 text-dim">
      {label}
      <input
        type="date"
        className={FIELD}
        value={span[end]}
        min="1970-01-01"
        max="8999-12-31"
        onChange={(event) => isDay(event.target.value) && put({ ...span, [end]: event.target.value })}
      />
    </label>
  );
  return (
    <>
      <select
        aria-label="Time"
        className={FIELD}
        value={chosen ?? ""}
        onChange={(event) => put({ ...known[event.target.value] })}
      >
        {chosen === undefined && <option value="">Other days</option>}
        {Object.keys(known).map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      {field("From", "from")}
      {field("To", "to")}
    </>
  );
}

interface UsageProps {
  shares: Share[];
  by: UsageBy;
  per: PeriodName;
  span: Span;
  /** What was shown before, while what is asked for is on its way. */
  stale: boolean;
}

function Usage({ shares, by, per, span, stale }: UsageProps) {
  const { sort = "-used" } = route.useSearch();
  const navigate = route.useNavigate();
  const wordOf = useWords(by);
  const sums = useMemo(() => summed(shares), [shares]);
  const rows = useMemo(() => sorted(sums.rows, sort, wordOf), [sums, sort, wordOf]);
  const csv = () => save(fileOf(by, sums, rows, wordOf), `usage-by-${by}-${span.from}-${span.to}.csv`);
  useCommands(rows.length > 0 ? [{ title: "Save the usage as CSV", run: csv }] : []);
  if (rows.length === 0 && sums.used === 0) {
    return (
      <Empty title={`No slots were used from ${span.from} to ${span.to}`} command={submitCommand()}>
        What experiments and tasks use appears here, and at the command line with{" "}
        <code className="font-mono text-sm">tenax usage aggregated --by {by}</code>. This creates an experiment:
      </Empty>
    );
  }
  const column = (id: string, title: string, align?: "right") => {
    const now = sort === id ? ("ascending" as const) : sort === `-${id}` ? ("descending" as const) : undefined;
    const to = now === undefined ? (id === "name" ? id : `-${id}`) : now === "ascending" ? `-${id}` : id;
    const act = () => void navigate({ search: (former) => ({ ...former, sort: to }), replace: true });
    return { id, title: <Sorter title={title} now={now} by={act} />, align, sorted: now ?? ("none" as const) };
  };
  return (
    <div className={`grid min-w-0 grid-cols-1 items-start gap-4 lg:grid-cols-2 ${stale ? "opacity-60" : ""}`}>
      <div className="flex min-w-0 flex-col gap-4">
        <Bars title={`Slot hours per ${per}`} of="used" per={per} shares={shares} sums={sums} wordOf={wordOf} />
        <Bars title={`Waited per ${per}`} of="waited" per={per} shares={shares} sums={sums} wordOf={wordOf} />
      </div>
      <div className="flex min-w-0 flex-col gap-2">
        <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
          <p role="status" aria-label="Total">
            <b className="font-semibold">{hours(sums.used)}</b> slot hours,{" "}
            <b className="font-semibold">{hours(sums.waited)}</b> waited
          </p>
          <Button onClick={csv}>Save as CSV</Button>
        </div>
        <Table
          label={`Slot hours by ${TITLES[by].toLowerCase()}`}
          rows={rows.slice(0, SHOWN)}
          keyOf={(row) => row.name}
          columns={[
            {
              ...column("name", TITLES[by]),
              name: true,
              cell: (row: Sum) => <Name by={by} name={row.name} span={span} word={wordOf(row.name)} />,
            },
            {
              ...column("used", "Slot hours", "right"),
              cell: (row) => <span title={String(row.used)}>{hours(row.used)}</span>,
            },
            { ...column("share", "Share", "right"), cell: (row) => shareOf(row.share) },
            {
              ...column("waited", "Waited", "right"),
              cell: (row) => <span title={String(row.waited)}>{hours(row.waited)}</span>,
            },
          ]}
        />
        {rows.length > SHOWN && (
          <p className="text-dim">
            The first {count(SHOWN)} of {count(rows.length)}; the file has all.
          </p>
        )}
        {(by === "label" || by === "group") && (
          <p className="text-dim">
            {by === "label" ? "An experiment with several labels" : "Someone in several groups"} counts for each of
            them.
          </p>
        )}
      </div>
    </div>
  );
}

/** A heading that sorts. */
function Sorter({ title, now, by }: { title: string; now?: "ascending" | "descending"; by: () => void }) {
  return (
    <button type="button" onClick={by} className="inline-flex h-full min-h-6 items-center gap-1 hover:text-text">
      {title}
      {now && <span aria-hidden="true">{now === "descending" ? "↓" : "↑"}</span>}
    </button>
  );
}

function hours(value: number): string {
  return decimals.format(value);
}

const decimals = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

function shareOf(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** How a name is written: projects are known by their numbers. */
function useWords(by: UsageBy): (name: string) => string {
  const projects = useQuery({ ...projectsQuery, enabled: by === "project" }).data;
  return useMemo(() => {
    const known = new Map(projects?.map((each) => [String(each.id), visible(`${each.workspaceName} / ${each.name}`)]));
    return (name) => {
      if (name === "") return NAMELESS[by] ?? "–";
      if (by === "project") return known.get(name) ?? `Project ${name}`;
      if (by === "size") return `${name} ${name === "1" ? "slot" : "slots"}`;
      return by === "type"
        ? name === "experiment"
          ? "Experiment"
          : (TASK_TYPES[taskType(name)] ?? name)
        : visible(name);
    };
  }, [by, projects]);
}

function taskType(name: string): TaskType {
  return `TASK_TYPE_${name.toUpperCase()}` as TaskType;
}

function Name({ by, name, span, word }: { by: UsageBy; name: string; span: Span; word: string }): ReactNode {
  const look = { className: "hover:underline", title: word };
  const filter = filterOf(by, name, span);
  if (filter !== undefined) {
    return (
      <Link to="/experiments" search={{ q: filter, archived: true }} {...look}>
        {word}
      </Link>
    );
  }
  if (by === "project" && name !== "") {
    return (
      <Link
        to="/projects/$projectId"
        params={{ projectId: Number(name) }}
        search={{ q: duringOf(span), archived: true }}
        {...look}
      >
        {word}
      </Link>
    );
  }
  if (by === "type") {
    return name === "experiment" ? (
      <Link to="/experiments" search={{ q: duringOf(span), archived: true }} {...look}>
        {word}
      </Link>
    ) : (
      <Link to="/tasks" search={{ type: taskType(name), old: true }} {...look}>
        {word}
      </Link>
    );
  }
  if (by === "agent") {
    return (
      <Link to="/cluster" search={{ q: name }} {...look}>
        {word}
      </Link>
    );
  }
  return <span title={word}>{word}</span>;
}

interface BarsProps {
  title: string;
  of: "used" | "waited";
  per: PeriodName;
  shares: Share[];
  sums: Sums;
  wordOf: (name: string) => string;
}

function Bars({ title, of, per, shares, sums, wordOf }: BarsProps) {
  const lines = useMemo(() => {
    // The same names have the same colours in both charts, however the table is sorted.
    const names = sums.rows.slice(0, MOST_BARS).map((row) => row.name);
    const stacked = stacks(shares, of, names);
    const steps = shares.map((_, place) => place);
    const words = apart([...names.map(wordOf), "All others"]);
    const made = stacked.names.map((values, place) => ({ name: words[place] ?? "", steps, values }));
    return stacked.others ? [...made, { name: words.at(-1) ?? "", steps, values: stacked.others }] : made;
  }, [shares, of, sums, wordOf]);
  const across = useMemo(
    () => (place: number | null | undefined) => {
      const share = Number.isInteger(place) ? shares[place as number] : undefined;
      return share ? labelOf(share.begins) : "";
    },
    [shares],
  );
  return <Chart title={title} lines={lines} x={ACROSS[per]} across={across} drawn={BARS} range={FROM_ZERO} />;
}

const ACROSS = { day: "day, UTC", week: "week, from Monday", month: "month" };
const FROM_ZERO = { low: 0 };

/** All rows, with full numbers. */
function fileOf(by: UsageBy, sums: Sums, rows: Sum[], wordOf: (name: string) => string): string {
  const table: unknown[][] = [
    [by, "slot_hours", "share", "waited_slot_hours"],
    ...rows.map((row) => [wordOf(row.name), row.used, row.share, row.waited]),
    ["total", sums.used, 1, sums.waited],
  ];
  return table.map((cells) => `${cells.map(cell).join(",")}\r\n`).join("");
}
