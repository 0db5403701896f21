/** Which columns a table shows, and in what order: it changes while one chooses. */

import { useState } from "react";
import { MAX_SHOWN, moved, type Placed } from "../../services/columns";
import { Button, FIELD } from "../../ui/Button";
import { Dialog, DialogBody } from "../../ui/Dialog";
import { type Choice, type Group, hasHeat, titleOf } from "./columns";
import { type Kind, placedAt } from "./kind";

const GROUPS: Group[] = ["General", "Metrics", "Hyperparameters", "Metadata"];
/** Of a group; who looks for others types. */
const MAX_LISTED = 200;

interface ColumnsProps<R extends { id: number }> {
  kind: Kind<R>;
  /** Of a project, whose least and greatest values are known. */
  mayHeat: boolean;
  choices: Choice[];
  placed: Placed[];
  onChange: (placed: Placed[]) => void;
  onReset: () => Placed[];
  onClose: () => void;
}

export function ColumnsDialog<R extends { id: number }>(props: ColumnsProps<R>) {
  const { kind, choices, placed: first, mayHeat, onChange, onReset, onClose } = props;
  const [placed, setPlaced] = useState(first);
  const [typed, setTyped] = useState("");
  const change = (next: Placed[]) => {
    const bounded = next.slice(0, MAX_SHOWN);
    if (bounded.length === 0) return;
    setPlaced(bounded);
    onChange(bounded);
  };
  const parts = typed.toLowerCase().split(/\s+/);
  const matching = choices.filter(({ title, id }) =>
    parts.every((part) => `${title} ${id}`.toLowerCase().includes(part)),
  );
  const isShown = (id: string) => placed.some((each) => each.id === id);
  const hide = (ids: Set<string>) => change(placed.filter((each) => !ids.has(each.id)));
  const show = (ids: string[]) =>
    change([...placed, ...ids.filter((id) => !isShown(id)).map((id) => placedAt(kind.own, id))]);
  return (
    <Dialog title="Columns" onClose={onClose} className="w-[min(720px,calc(100vw-24px))]">
      <DialogBody
        buttons={
          <>
            <Button onClick={() => setPlaced(onReset())}>Reset</Button>
            <Button look="primary" onClick={onClose}>
              Done
            </Button>
          </>
        }
      >
        <div className="flex flex-wrap items-center gap-2">
          <input
            type="search"
            aria-label="Find a column"
            placeholder="Find a column"
            className={`${FIELD} flex-1`}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
          <Button onClick={() => show(matching.map((each) => each.id))}>Show all</Button>
          <Button onClick={() => hide(new Set(matching.map((each) => each.id)))}>Hide all</Button>
        </div>
        <p className="text-dim" role="status">
          {`${placed.length} shown, of at most ${MAX_SHOWN}`}
        </p>
        <div className="grid grid-cols-1 gap-4 sm:grid-cols-2">
          <Order kind={kind} placed={placed} mayHeat={mayHeat} onChange={change} />
          <div className="flex min-w-0 flex-col gap-2">
            {GROUPS.map((group) => {
              const listed = matching.filter((each) => each.group === group);
              if (listed.length === 0) return null;
              return (
                <fieldset key={group} className="min-w-0">
                  <legend className="font-medium text-dim text-sm">{group}</legend>
                  {listed.slice(0, MAX_LISTED).map((choice) => (
                    <label key={choice.id} className="flex min-h-7 items-center gap-2">
                      <input
                        type="checkbox"
                        className="size-4 shrink-0 accent-(--accent)"
                        checked={isShown(choice.id)}
                        onChange={() => (isShown(choice.id) ? hide(new Set([choice.id])) : show([choice.id]))}
                      />
                      <span className="truncate" title={choice.id}>
                        {choice.title}
                      </span>
                    </label>
                  ))}
                  {listed.length > MAX_LISTED && <p className="text-dim">{`${listed.length - MAX_LISTED} more`}</p>}
                </fieldset>
              );
            })}
          </div>
        </div>
      </DialogBody>
    </Dialog>
  );
}

/** Those that are shown, from left to right. */
function Order<R extends { id: number }>(props: {
  kind: Kind<R>;
  placed: Placed[];
  mayHeat: boolean;
  onChange: (placed: Placed[]) => void;
}) {
  const { kind, placed, mayHeat, onChange } = props;
  return (
    <ol aria-label="Shown, from left to right" className="flex min-w-0 flex-col">
      {placed.map((column, place) => {
        const title = titleOf(kind, column.id);
        const [before, after] = [placed[place - 1], placed[place + 1]];
        const pin = () => {
          const next = placed.map((each) => (each === column ? { ...each, pinned: !each.pinned } : each));
          onChange([...next.filter((each) => each.pinned), ...next.filter((each) => !each.pinned)]);
        };
        return (
          <li key={column.id} className="flex min-h-7 items-center gap-1">
            <span className="min-w-0 flex-1 truncate" title={column.id}>
              {title}
            </span>
            <Step label={`${title} to the left`} on={before && (() => onChange(moved(placed, column.id, before.id)))}>
              ↑
            </Step>
            <Step label={`${title} to the right`} on={after && (() => onChange(moved(placed, column.id, after.id)))}>
              ↓
            </Step>
            {mayHeat && hasHeat(column.id) && (
              <Button
                aria-label={`Heat map of ${title}`}
                aria-pressed={column.heat ?? false}
                onClick={() => onChange(placed.map((each) => (each === column ? heated(each) : each)))}
                className="text-sm"
              >
                {column.heat ? "Heat on" : "Heat"}
              </Button>
            )}
            <Button aria-label={`Pin ${title}`} aria-pressed={column.pinned} onClick={pin} className="text-sm">
              {column.pinned ? "Pinned" : "Pin"}
            </Button>
          </li>
        );
      })}
    </ol>
  );
}

function heated({ heat, ...column }: Placed): Placed {
  return heat ? column : { ...column, heat: true };
}

function Step({ label, on, children }: { label: string; on?: () => void; children: string }) {
  return (
    <Button aria-label={label} disabled={!on} onClick={on} className="min-w-7 px-1">
      {children}
    </Button>
  );
}
