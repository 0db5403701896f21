/**
 * A filter built by hand: conditions with operators that fit their columns, in groups in one another. What comes of it is
 * the text that one could have typed, which is shown all the time and read by the master.
 */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useState } from "react";
import { own } from "../../own";
import { columnsQuery, type ProjectColumn } from "../../services/columns";
import { checkFilter, type FilterOf } from "../../services/filter";
import { type Condition, type ConditionGroup, isGroup, type Part, writtenFilter } from "../../services/filterTree";
import { Button, FIELD } from "../../ui/Button";
import { Dialog, DialogBody } from "../../ui/Dialog";
import { choicesOf } from "./columns";
import type { Kind } from "./kind";

const AFTER_MS = 200;
/** Groups in one another: deeper ones are typed. */
const MAX_DEPTH = 5;

type Holds = "text" | "number" | "date" | "state" | "word";

interface Column {
  id: string;
  title: string;
  holds: Holds;
}

const CONTAINS: [string, string] = [":", "contains"];
const IS: [string, string][] = [
  ["=", "is"],
  ["!=", "is not"],
];
const ORDERS: [string, string][] = [
  ["<", "<"],
  ["<=", "≤"],
  [">", ">"],
  [">=", "≥"],
];
const HAS: [string, string] = ["has", "has a value"];
const OPERATORS: Record<Holds, [string, string][]> = {
  text: [CONTAINS, ...IS, HAS],
  word: [[":", "is"], ["!=", "is not"], HAS],
  state: [
    [":", "is"],
    ["!=", "is not"],
  ],
  number: [...ORDERS, ...IS, HAS],
  date: [[">", "after"], ["<", "before"], [":", "on"], HAS],
};
const ALL: [string, string][] = [CONTAINS, ...IS, ...ORDERS, HAS];
const HINTS: Record<Holds, string> = {
  text: "text",
  word: "one, or several separated by commas",
  state: "error, paused",
  number: "number",
  date: "2026-01-31 or 7d",
};
const STATES = ["active", "queued", "pulling", "starting", "running", "paused", "stopping", "completed", "canceled"];

interface BuilderProps {
  kind: Kind<{ id: number }>;
  of: FilterOf;
  first: ConditionGroup;
  onBuilt: (query: string) => void;
  onClose: () => void;
}

export default function BuilderDialog({ kind, of, first, onBuilt, onClose }: BuilderProps) {
  const [tree, setTree] = useState<ConditionGroup>(() =>
    first.parts.length > 0 ? first : { ...first, parts: [FRESH] },
  );
  const [problem, setProblem] = useState("");
  const catalogue = useQuery(columnsQuery(of.projectId, of.detail)).data ?? [];
  const columns = columnsOf(kind, catalogue);
  const text = writtenFilter(tree);
  useEffect(() => {
    let current = true;
    const timer = setTimeout(async () => {
      const checked = await checkFilter(text, undefined, of).catch(() => undefined);
      if (current) setProblem(checked?.problem?.message ?? "");
    }, AFTER_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [text, of]);
  return (
    <Dialog title="Build a filter" onClose={onClose} className="w-[min(760px,calc(100vw-24px))]">
      <DialogBody
        buttons={
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button
              look="primary"
              disabled={problem !== ""}
              onClick={() => {
                onClose();
                onBuilt(text);
              }}
            >
              Apply
            </Button>
          </>
        }
      >
        <Group group={tree} columns={columns} depth={0} onChange={setTree} />
        <p className="break-words text-dim" aria-live="polite">
          {text ? (
            <>
              As text: <code className="font-mono text-text">{text}</code>
            </>
          ) : (
            "There are no conditions yet."
          )}
        </p>
        {problem && (
          <p role="status" className="break-words text-bad">
            {problem}
          </p>
        )}
      </DialogBody>
    </Dialog>
  );
}

const FRESH: Condition = { column: "state", operator: ":", values: [""] };

function columnsOf(kind: Kind<{ id: number }>, catalogue: readonly ProjectColumn[]): Column[] {
  const types = new Map(catalogue.map((each) => [each.column, each.type]));
  return choicesOf(kind, catalogue).map(({ id, title }) => ({ id, title, holds: holdsOf(kind, id, types.get(id)) }));
}

/** Without a project the columns that every table has say it by their look. */
function holdsOf(kind: Kind<{ id: number }>, id: string, type: ProjectColumn["type"] | undefined): Holds {
  if (id === "state") return "state";
  if (id === "user" || id === "tags") return "word";
  if (type === "COLUMN_TYPE_DATE" || id === "startTime" || id === "endTime") return "date";
  if (type === "COLUMN_TYPE_NUMBER" || (type === undefined && own(kind.own, id)?.align === "right")) return "number";
  return "text";
}

interface GroupProps {
  group: ConditionGroup;
  columns: Column[];
  depth: number;
  onChange: (group: ConditionGroup) => void;
  onRemove?: () => void;
}

function Group({ group, columns, depth, onChange, onRemove }: GroupProps) {
  const change = (place: number, ...parts: Part[]) =>
    onChange({ ...group, parts: group.parts.toSpliced(place, 1, ...parts) });
  const add = (part: Part) => onChange({ ...group, parts: [...group.parts, part] });
  return (
    <fieldset className={`flex min-w-0 flex-col gap-2 ${depth > 0 ? "rounded-md border border-line p-2" : ""}`}>
      <legend className="sr-only">{depth > 0 ? `Group, ${depth} deep` : "The filter"}</legend>
      <div className="flex flex-wrap items-center gap-2">
        <select
          aria-label="How conditions hold"
          className={FIELD}
          value={group.any ? "any" : "all"}
          onChange={(event) => onChange({ ...group, any: event.target.value === "any" })}
        >
          <option value="all">All of these hold</option>
          <option value="any">One of these holds</option>
        </select>
        <Not part={group} onChange={onChange} />
        <span className="flex-1" />
        {onRemove && (
          <Button aria-label="Remove the group" className="min-w-7 px-1" onClick={onRemove}>
            ✕
          </Button>
        )}
      </div>
      {group.parts.map((part, place) =>
        isGroup(part) ? (
          <Group
            key={place}
            group={part}
            columns={columns}
            depth={depth + 1}
            onChange={(to) => change(place, to)}
            onRemove={() => change(place)}
          />
        ) : (
          <Row
            key={place}
            condition={part}
            columns={columns}
            onChange={(to) => change(place, to)}
            onRemove={() => change(place)}
            onGroup={depth < MAX_DEPTH ? () => change(place, { any: !group.any, parts: [part] }) : undefined}
          />
        ),
      )}
      <div className="flex flex-wrap gap-2">
        <Button onClick={() => add(FRESH)}>Add a condition</Button>
        {depth < MAX_DEPTH && <Button onClick={() => add({ any: !group.any, parts: [FRESH] })}>Add a group</Button>}
      </div>
    </fieldset>
  );
}

function Not<P extends Part>({ part, onChange }: { part: P; onChange: (part: P) => void }) {
  return (
    <label className="inline-flex min-h-7 items-center gap-1">
      <input
        type="checkbox"
        className="size-4 accent-(--accent)"
        checked={part.not ?? false}
        onChange={(event) => onChange({ ...part, not: event.target.checked || undefined })}
      />
      not
    </label>
  );
}

interface RowProps {
  condition: Condition;
  columns: Column[];
  onChange: (condition: Condition) => void;
  onRemove: () => void;
  onGroup?: () => void;
}

/** The value for text by itself. */
const ANY_NAME = "\u0000";

function Row({ condition, columns, onChange, onRemove, onGroup }: RowProps) {
  const { column, operator, values } = condition;
  const list = useId();
  const known = columns.find((each) => each.id === column);
  const isNew = column !== undefined && !known;
  const operators = known ? OPERATORS[known.holds] : isNew ? ALL : [CONTAINS];
  // An operator that was typed is offered, whatever fits.
  const offered = operators.some(([sign]) => sign === operator)
    ? operators
    : [...operators, [operator, operator] as const];
  const several = known?.holds === "state" || known?.holds === "word" || values.length > 1;
  const choose = (id: string) => {
    if (id === ANY_NAME) return onChange({ operator: ":", values, not: condition.not });
    const fits = OPERATORS[columns.find((each) => each.id === id)?.holds ?? "text"];
    const sign = fits.some(([each]) => each === operator) ? operator : (fits[0]?.[0] ?? ":");
    onChange({ column: id, operator: sign, values, not: condition.not });
  };
  return (
    <div className="flex flex-wrap items-center gap-1.5">
      <Not part={condition} onChange={onChange} />
      <select
        aria-label="Column"
        className={`${FIELD} max-w-52`}
        value={column ?? ANY_NAME}
        onChange={(event) => choose(event.target.value)}
      >
        <option value={ANY_NAME}>Name or number</option>
        {isNew && <option value={column}>{column}</option>}
        {columns.map((each) => (
          <option key={each.id} value={each.id}>
            {each.title}
          </option>
        ))}
      </select>
      <select
        aria-label="Operator"
        className={FIELD}
        value={operator}
        onChange={(event) => onChange({ ...condition, operator: event.target.value })}
      >
        {offered.map(([sign, word]) => (
          <option key={sign} value={sign}>
            {word}
          </option>
        ))}
      </select>
      {operator !== "has" && (
        <>
          <input
            aria-label="Value"
            className={`${FIELD} min-w-20 flex-1`}
            placeholder={HINTS[known?.holds ?? "text"]}
            list={known?.holds === "state" ? list : undefined}
            value={values.join(",")}
            onChange={(event) =>
              onChange({ ...condition, values: several ? event.target.value.split(",") : [event.target.value] })
            }
          />
          {known?.holds === "state" && (
            <datalist id={list}>
              {[...STATES, "error"].map((state) => (
                <option key={state} value={state} />
              ))}
            </datalist>
          )}
        </>
      )}
      {onGroup && (
        <Button aria-label="Put the condition into a group" className="min-w-7 px-1" onClick={onGroup}>
          ( )
        </Button>
      )}
      <Button aria-label="Remove the condition" className="min-w-7 px-1" onClick={onRemove}>
        ✕
      </Button>
    </div>
  );
}
