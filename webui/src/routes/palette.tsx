/** The palette: every page, experiments by number or name, and all that can be done now, with its key. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { type Command, titleOf, useListed } from "../keys/commands";
import { KEYS, keysOf } from "../keys/table";
import { experimentsQuery } from "../services/experiments";
import { projectsQuery } from "../services/projects";
import { appearance } from "../services/states";
import { Caps } from "../ui/Caps";
import { Dialog } from "../ui/Dialog";
import { visible } from "../visible";

const AFTER_MS = 150;
const MAX_EXPERIMENTS = 8;
const MAX_EACH = 12;

interface Line {
  id: string;
  title: string;
  aside?: string;
  keys?: string;
  run: () => void;
}

interface Part {
  title: string;
  lines: Line[];
}

export default function Palette({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const id = useId();
  const parts = useParts(typed.trim());
  const lines = parts.flatMap((part) => part.lines);
  const active = Math.min(at, lines.length - 1);
  useEffect(() => {
    list.current?.querySelector(`[id="${id}-${active}"]`)?.scrollIntoView({ block: "nearest" });
  }, [active, id]);
  const run = (line: Line | undefined) => {
    if (!line) return;
    onClose();
    line.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, () => void> = {
      ArrowDown: () => setAt((active + 1) % Math.max(1, lines.length)),
      ArrowUp: () => setAt((active + lines.length - 1) % Math.max(1, lines.length)),
      Enter: () => run(lines[active]),
    };
    const step = event.nativeEvent.isComposing ? undefined : steps[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  };
  let place = 0;
  return (
    <Dialog title="Palette" bare onClose={onClose} first={field}>
      <input
        ref={field}
        role="combobox"
        aria-label="Page, experiment or action"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={lines.length > 0 ? `${id}-${active}` : undefined}
        aria-autocomplete="list"
        autoComplete="off"
        placeholder="Page, experiment or action"
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
        className="min-h-11 w-full border-line border-b bg-surface px-4 text-text outline-none placeholder:text-dim"
      />
      <div
        ref={list}
        id={`${id}-list`}
        role="listbox"
        aria-label="What there is"
        className="min-h-0 flex-1 overflow-y-auto p-2"
        tabIndex={0}
        onKeyDown={onKeyDown}
      >
        {parts.map((part) => (
          <div key={part.title} role="group" aria-label={part.title}>
            <p aria-hidden="true" className="px-2 pt-2 pb-1 text-dim text-sm">
              {part.title}
            </p>
            {part.lines.map((line) => {
              const index = place++;
              return (
                // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys.
                <div
                  key={line.id}
                  id={`${id}-${index}`}
                  role="option"
                  aria-selected={index === active}
                  onClick={() => run(line)}
                  onPointerMove={() => setAt(index)}
                  className={`flex min-h-8 cursor-pointer items-center gap-3 rounded px-2 ${index === active ? "bg-hover" : ""}`}
                >
                  <span className="min-w-0 flex-1 truncate">{visible(line.title)}</span>
                  {line.aside && <span className="shrink-0 text-dim">{line.aside}</span>}
                  {line.keys && <Caps keys={line.keys} />}
                </div>
              );
            })}
          </div>
        ))}
      </div>
      <p role="status" className={lines.length > 0 ? "sr-only" : "px-4 pb-4 text-dim"}>
        {lines.length > 0 ? "" : "Nothing found."}
      </p>
    </Dialog>
  );
}

/** What is there for what was typed; all of its words have to occur. */
function useParts(typed: string): Part[] {
  const commands = useListed();
  const experiments = useExperiments(typed);
  const projects = useProjects(typed);
  const asked = typed.toLowerCase().split(/\s+/);
  const fits = (title: string) => asked.every((word) => title.toLowerCase().includes(word));
  const lineOf = (command: Command): Line => ({
    id: command.name ?? titleOf(command),
    title: titleOf(command),
    keys: command.name && keysOf(command.name),
    run: command.run,
  });
  const shown = commands.filter((each) => !each.silent && each.name !== "palette" && fits(titleOf(each)));
  const goes = (command: Command) => command.name !== undefined && KEYS[command.name].group === "Navigation";
  const everywhere = (command: Command) => command.name !== undefined && KEYS[command.name].group === "Everywhere";
  const parts = [
    {
      title: "On what is shown or selected",
      lines: shown.filter((each) => !goes(each) && !everywhere(each)).map(lineOf),
    },
    { title: "Experiments", lines: experiments },
    { title: "Pages", lines: [...shown.filter(goes).map(lineOf), ...projects] },
    { title: "Everywhere", lines: shown.filter(everywhere).map(lineOf) },
  ];
  return parts.filter((part) => part.lines.length > 0);
}

function useLate(typed: string): string {
  const [late, setLate] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setLate(typed), AFTER_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return late;
}

function useExperiments(typed: string): Line[] {
  const navigate = useNavigate();
  const asked = useLate(typed);
  const number = /^#?(\d{1,15})$/.exec(asked)?.[1];
  const search = { name: asked, orId: number ? Number(number) : undefined, archived: true, sort: "-id" };
  const found = useQuery({
    ...experimentsQuery(search, 0, MAX_EXPERIMENTS),
    enabled: asked !== "",
    placeholderData: keepPreviousData,
  });
  if (typed === "" || !found.data) return [];
  const first = (id: number) => (String(id) === number ? 0 : 1);
  const rows = [...found.data.rows].sort((a, b) => first(a.id) - first(b.id));
  return rows.map((row) => ({
    id: `experiment-${row.id}`,
    title: `${row.id} ${row.name}`,
    aside: appearance(row.state).word,
    run: () => void navigate({ to: "/experiments/$experimentId", params: { experimentId: row.id } }),
  }));
}

function useProjects(typed: string): Line[] {
  const navigate = useNavigate();
  const projects = useQuery({ ...projectsQuery, enabled: typed !== "" }).data ?? [];
  const asked = typed.toLowerCase().split(/\s+/);
  if (typed === "") return [];
  return projects
    .map((project) => ({
      id: `project-${project.id}`,
      title: `Project ${project.workspaceName} / ${project.name}`,
      run: () => void navigate({ to: "/projects/$projectId", params: { projectId: project.id } }),
    }))
    .filter(({ title }) => asked.every((word) => title.toLowerCase().includes(word)))
    .slice(0, MAX_EACH);
}
