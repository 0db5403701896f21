/** What stands in an address: read as far as it means something, the rest is left out. Pure. */

import type { Trouble } from "./cluster/troubles";
import { LEVELS } from "./output/levels";
import type { OutputSearch } from "./output/Output";
import { BEST_CURVES } from "./search/curves";
import { STATE_FILTERS } from "./services/stateFilters";
import type { TaskType } from "./services/tasks";
import type { UsageBy } from "./services/usage";
import { isDay, PERIODS, type PeriodName, USAGE_BY } from "./usage/address";

export type Search = Record<string, unknown>;

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : typeof value === "number" ? String(value) : undefined;
}

function texts(value: unknown): string[] | undefined {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : undefined;
}

/** What of a list of experiments stands in the address. */
export interface ListSearch {
  q?: string;
  state?: string;
  owner?: "me";
  archived?: boolean;
  sort?: string;
  /** Columns with their widths, from left to right. */
  cols?: string[];
  /** All trials, each a row; without it experiments. */
  rows?: "trials";
}

export function listSearch(search: Search): ListSearch {
  const state = text(search.state);
  return {
    q: text(search.q),
    state: state !== undefined && Object.hasOwn(STATE_FILTERS, state) ? state : undefined,
    owner: search.owner === "me" ? "me" : undefined,
    archived: search.archived === true || undefined,
    sort: text(search.sort),
    rows: search.rows === "trials" ? "trials" : undefined,
    cols: texts(search.cols),
  };
}

/** Parts of a trial, each with its address; without one its overview. */
export const TRIAL_TABS = ["metrics", "logs", "system", "checkpoints", "code", "config", "events"] as const;
export type TrialTab = (typeof TRIAL_TABS)[number];

const CHART_AXES = ["steps", "time", "epoch"] as const;

/**
 * What of the charts of a trial stands in the address: part of a metric's name, the steps of a zoom, smoothing, what the
 * axis shows (steps, unless something else is named), and whether numbers stand in their place.
 */
export interface ChartSearch {
  metric?: string;
  /** `metric` is a pattern. */
  pattern?: boolean;
  from?: number;
  to?: number;
  /** These three say something only where it is not what is kept for the project. */
  smooth?: number;
  x?: (typeof CHART_AXES)[number];
  log?: boolean;
  view?: "table";
}

export function chartSearch(search: Search): ChartSearch {
  return {
    metric: text(search.metric),
    pattern: search.pattern === true || undefined,
    log: typeof search.log === "boolean" ? search.log : undefined,
    from: stepOf(search.from),
    to: stepOf(search.to),
    smooth: smoothOf(search.smooth),
    x: CHART_AXES.find((axis) => axis === search.x),
    view: search.view === "table" ? "table" : undefined,
  };
}

function smoothOf(value: unknown): number | undefined {
  return typeof value === "number" && value >= 0 && value < 1 ? value : undefined;
}

function stepOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
}

function outputSearch(search: Search): OutputSearch {
  const line = Number(search.line);
  return {
    q: text(search.q),
    re: search.re === true || undefined,
    level: LEVELS.find((level) => level === search.level),
    rank: text(search.rank),
    source: text(search.source),
    line: Number.isSafeInteger(line) && line > 0 ? line : undefined,
  };
}

/** `file`: of its code; `checkpoint`: the one that is looked into. */
type TrialSearch = OutputSearch & ChartSearch & { tab?: TrialTab; file?: string; checkpoint?: string };

export function trialSearch(search: Search): TrialSearch {
  return {
    // Attempts stand among the events.
    tab: search.tab === "attempts" ? "events" : TRIAL_TABS.find((tab) => tab === search.tab),
    file: text(search.file),
    checkpoint: text(search.checkpoint),
    ...chartSearch(search),
    ...outputSearch(search),
  };
}

/** What of the page of an experiment stands in the address; `brush`: axis -> from and to, or some texts. */
interface SearchSearch extends ChartSearch {
  sort?: string;
  best?: number;
  brush?: Record<string, (number | string)[]>;
  /** Axes in their order, by hyperparameter, and those that have the other scale. */
  axes?: string[];
  scales?: string[];
}

/** Numbers with commas; a single one is a number, as addresses are read. */
export type Numbers = string | number;

export function numbers(value: unknown): Numbers | undefined {
  const written = text(value);
  return written !== undefined && /^\d{1,15}$/.test(written) ? Number(written) : written;
}

/** What of a comparison stands in the address. */
export interface CompareSearch {
  trials?: Numbers;
  hide?: Numbers;
  tab?: "diff";
  all?: boolean;
  q?: string;
  /** `q` is a pattern. */
  re?: boolean;
  /** These three say something only where it is not what is kept for the project. */
  x?: "time" | "steps";
  log?: boolean;
  smooth?: number;
  /** Hyperparameters by which trials are grouped. */
  by?: string[];
  band?: "range";
}

/** What of the usage stands in the address; days are those of UTC. */
export interface UsageSearch {
  by?: UsageBy;
  from?: string;
  to?: string;
  per?: PeriodName;
  sort?: string;
}

/** What of a list of people or of tokens stands in the address. */
export function peopleSearch(search: Search): { q?: string; user?: string; sort?: string; inactive?: boolean } {
  const { q, user, sort, inactive } = search;
  return { q: text(q), user: text(user), sort: text(sort), inactive: inactive === true || undefined };
}

const TASK_TABS = ["config", "attempts", "children"] as const;

export function loginSearch(search: Search): { next?: string } {
  return { next: text(search.next) };
}

export function projectSearch(search: Search): ListSearch & { tab?: "notes" | "settings"; note?: number } {
  return {
    ...listSearch(search),
    tab: search.tab === "notes" || search.tab === "settings" ? search.tab : undefined,
    note: stepOf(search.note),
  };
}

export function tasksSearch(search: Search): {
  q?: string;
  type?: TaskType;
  owner?: "me";
  workspace?: number;
  old?: boolean;
} {
  return {
    q: text(search.q),
    type: /^TASK_TYPE_[A-Z_]+$/.test(String(search.type)) ? (search.type as TaskType) : undefined,
    owner: search.owner === "me" ? "me" : undefined,
    workspace: stepOf(search.workspace),
    old: search.old === true || undefined,
  };
}

export function taskSearch(search: Search): OutputSearch & { tab?: (typeof TASK_TABS)[number] } {
  return {
    ...outputSearch(search),
    tab: TASK_TABS.find((tab) => tab === search.tab),
  };
}

export function workspacesSearch(search: Search): { q?: string; owner?: "me"; archived?: boolean } {
  return {
    q: text(search.q),
    owner: search.owner === "me" ? "me" : undefined,
    archived: search.archived === true || undefined,
  };
}

export function workspaceSearch(search: Search): { tab?: "members" | "settings"; archived?: boolean } {
  return {
    tab: search.tab === "members" || search.tab === "settings" ? search.tab : undefined,
    archived: search.archived === true || undefined,
  };
}

export function createSearch(search: Search): { fork?: number; project?: number } {
  return {
    fork: id(String(search.fork)) || undefined,
    project: id(String(search.project)) || undefined,
  };
}

export function experimentSearch(search: Search): SearchSearch {
  return {
    ...chartSearch(search),
    sort: text(search.sort),
    best: BEST_CURVES.find((best) => best === search.best),
    axes: texts(search.axes),
    scales: texts(search.scales),
    brush: search.brush && typeof search.brush === "object" ? (search.brush as SearchSearch["brush"]) : undefined,
  };
}

export function compareSearch(search: Search): CompareSearch {
  return {
    trials: numbers(search.trials),
    hide: numbers(search.hide),
    tab: search.tab === "diff" ? "diff" : undefined,
    all: search.all === true || undefined,
    q: text(search.q),
    re: search.re === true || undefined,
    // Older addresses have batches for steps.
    x: search.x === "time" ? "time" : search.x === "steps" || search.x === "batches" ? "steps" : undefined,
    log: typeof search.log === "boolean" ? search.log : undefined,
    smooth: smoothOf(search.smooth),
    by: texts(search.by),
    band: search.band === "range" ? "range" : undefined,
  };
}

export function queueSearch(search: Search): { pool?: string; job?: string } {
  return {
    pool: text(search.pool),
    job: text(search.job),
  };
}

export function clusterSearch(search: Search): { pool?: string; show?: Trouble; q?: string } {
  return {
    pool: text(search.pool),
    show: text(search.show) as Trouble | undefined,
    q: text(search.q),
  };
}

export function usageSearch(search: Search): UsageSearch {
  return {
    by: USAGE_BY.find((by) => by === search.by),
    from: isDay(search.from) ? search.from : undefined,
    to: isDay(search.to) ? search.to : undefined,
    per: PERIODS.find((per) => per === search.per),
    sort: text(search.sort),
  };
}

export function masterLogSearch(search: Search): { q?: string; level?: string } {
  return {
    q: text(search.q),
    level: LEVELS.find((level) => level === search.level),
  };
}

export function modelsSearch(search: Search): { q?: string; archived?: boolean } {
  return {
    q: text(search.q),
    archived: search.archived === true || undefined,
  };
}

export function templatesSearch(search: Search): { q?: string; name?: string; new?: true } {
  return {
    q: text(search.q),
    name: text(search.name),
    new: search.new === true || undefined,
  };
}

export function webhooksSearch(search: Search): { webhook?: number } {
  return { webhook: stepOf(search.webhook) };
}

/** A number in an address; 0 for what is none: nothing has it. */
export function id(value: string): number {
  return /^\d{1,15}$/.test(value) ? Number(value) : 0;
}
