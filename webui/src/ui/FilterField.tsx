/**
 * A field for a filter that the master reads. What is wrong is underlined, with the reason below; only what can be read
 * takes effect. What may stand at the cursor is offered: arrows choose, Enter or Tab takes it.
 */

import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { type Checked, type Completion, fromPlace, isWords, toPlace } from "../services/filter";
import { FIELD } from "./Button";
import { focusAgain } from "./overlays";
import { typedMark } from "./typed";

const AFTER_MS = 150;

interface FilterFieldProps {
  value: string;
  label: string;
  /** Whether it can be read; with `at`, what may stand there. */
  check: (text: string, at: number) => Promise<Checked>;
  /** Only what can be read; `continued`: typed on after the last time. */
  onChange: (value: string, continued: boolean) => void;
}

const NOTHING: Checked = { completions: [] };

export function FilterField(props: FilterFieldProps) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(props.value);
  const [known, setKnown] = useState(props.value);
  const [checked, setChecked] = useState(NOTHING);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const [scrolled, setScrolled] = useState(0);
  const continued = useRef(false);
  const latest = useRef(props);
  latest.current = props;
  // The address changed, by Back or a link: it is what counts.
  if (props.value !== known) {
    setKnown(props.value);
    if (typed.trim() !== props.value) {
      setTyped(props.value);
      setChecked(NOTHING);
    }
  }
  const [turn, setTurn] = useState(0);
  const answered = useRef(0);
  useEffect(() => {
    if (turn === 0) return;
    let current = true;
    const timer = setTimeout(async () => {
      const apply = () => {
        if (typed.trim() === latest.current.value) return;
        latest.current.onChange(typed.trim(), continued.current);
        continued.current = true;
      };
      // What can only be right does not wait for the answer.
      if (isWords(typed.trim())) apply();
      const at = field.current?.selectionStart ?? typed.length;
      const answer = await latest.current.check(typed, toPlace(typed, at)).catch(() => NOTHING);
      if (!current) return;
      answered.current = turn;
      setChecked(answer);
      setActive(-1);
      if (!answer.problem) apply();
    }, AFTER_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [typed, turn]);

  const type = (text: string) => {
    setTyped(text);
    setTurn(turn + 1);
    setOpen(true);
  };
  const take = (completion: Completion) => {
    const start = fromPlace(typed, completion.start);
    const text = typed.slice(0, start) + completion.text + typed.slice(fromPlace(typed, completion.end));
    const at = start + completion.text.length;
    type(text);
    setChecked({ ...checked, completions: [] });
    requestAnimationFrame(() => field.current?.setSelectionRange(at, at));
  };
  const options = open ? checked.completions : [];
  const leave = () => {
    setOpen(false);
    continued.current = false;
    focusAgain(null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0 && options.length > 0) {
      event.preventDefault();
      setActive(Math.max(-1, Math.min(options.length - 1, active + step)));
    } else if ((event.key === "Enter" || event.key === "Tab") && options[active]) {
      event.preventDefault();
      take(options[active]);
    } else if (event.key === "Escape" || event.key === "Enter") {
      event.preventDefault();
      leave();
    }
  };
  // What was said of a text that was typed on is not said of the new one.
  const problem = answered.current === turn ? checked.problem : undefined;
  return (
    <div className="relative min-w-56 max-w-lg flex-1">
      <div
        aria-hidden="true"
        className="pointer-events-none absolute inset-0 overflow-hidden whitespace-pre border border-transparent px-2 py-1 text-transparent"
      >
        <div style={{ transform: `translateX(${-scrolled}px)` }}>
          {problem && (
            <>
              {typed.slice(0, fromPlace(typed, problem.start))}
              <span data-wrong className="underline decoration-2 decoration-bad decoration-wavy underline-offset-4">
                {typed.slice(fromPlace(typed, problem.start), fromPlace(typed, problem.end)) || " "}
              </span>
            </>
          )}
        </div>
      </div>
      <input
        ref={field}
        type="search"
        role="combobox"
        aria-label={props.label}
        aria-expanded={options.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={options[active] ? `${id}-${active}` : undefined}
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem ? `${id}-problem` : undefined}
        autoComplete="off"
        spellCheck={false}
        placeholder={'state:error val_loss<0.5 owner:me "part of a name"'}
        className={`${FIELD} w-full ${problem ? "border-bad" : ""}`}
        value={typed}
        data-typed={typedMark(typed.trim() !== props.value)}
        onChange={(event) => type(event.target.value)}
        onFocus={() => {
          continued.current = false;
        }}
        onBlur={() => setOpen(false)}
        onScroll={(event) => setScrolled(event.currentTarget.scrollLeft)}
        onKeyDown={onKeyDown}
      />
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label="Suggestions"
        hidden={options.length === 0}
        className="absolute z-20 mt-1 max-h-72 min-w-56 overflow-y-auto rounded-md border border-line bg-surface p-1"
      >
        {options.map((option, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys.
          <div
            key={`${option.kind}-${option.text}`}
            id={`${id}-${place}`}
            role="option"
            tabIndex={-1}
            aria-selected={place === active}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(option)}
            className={`flex min-h-7 cursor-pointer items-center gap-3 rounded px-2 ${place === active ? "bg-hover" : ""}`}
          >
            <span className="min-w-0 flex-1 truncate">{option.text}</span>
            <span className="text-dim text-sm">{option.kind}</span>
          </div>
        ))}
      </div>
      <p
        id={`${id}-problem`}
        role="status"
        className={problem ? "break-words px-2 pt-0.5 text-bad text-sm" : "sr-only"}
      >
        {problem?.message ?? ""}
      </p>
    </div>
  );
}
