import { useEffect, useRef, useState } from "react";
import { FIELD } from "./Button";
import { focusAgain } from "./overlays";

const AFTER_MS = 150;

/** A field whose text takes effect a moment after the last key. */
export function SearchField(props: { value: string; label: string; onChange: (value: string) => void }) {
  const [typed, setTyped] = useState(props.value);
  const [known, setKnown] = useState(props.value);
  const change = useRef(props.onChange);
  change.current = props.onChange;
  // The address changed, by Back or a link: it is what counts.
  if (props.value !== known) {
    setKnown(props.value);
    setTyped(props.value);
  }
  useEffect(() => {
    if (typed === props.value) return;
    const timer = setTimeout(() => change.current(typed), AFTER_MS);
    return () => clearTimeout(timer);
  }, [typed, props.value]);
  return (
    <input
      type="search"
      aria-label={props.label}
      placeholder={props.label}
      className={`${FIELD} w-48`}
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape" && event.key !== "Enter") return;
        event.preventDefault();
        focusAgain(null);
      }}
    />
  );
}
