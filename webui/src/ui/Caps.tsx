import { caps } from "../keys/table";

/** Keys as one finds them on a keyboard. */
export function Caps({ keys }: { keys: string }) {
  return (
    <span aria-hidden="true" className="inline-flex gap-0.5">
      {caps(keys).map((cap) => (
        <kbd
          key={cap}
          className="min-w-5 rounded border border-line bg-sunken px-1 text-center font-sans text-dim text-sm"
        >
          {cap}
        </kbd>
      ))}
    </span>
  );
}
