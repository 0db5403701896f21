import type { ButtonHTMLAttributes, Ref } from "react";

const LOOKS = {
  plain: "border-line bg-surface hover:bg-hover text-text",
  primary: "border-accent bg-accent text-on-accent hover:opacity-90",
  danger: "border-bad bg-surface text-bad hover:bg-hover",
};

/** A button; at least 28 px high. */
export function Button({
  look = "plain",
  className = "",
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { look?: keyof typeof LOOKS; ref?: Ref<HTMLButtonElement> }) {
  return (
    <button
      type="button"
      {...rest}
      className={`inline-flex min-h-7 items-center justify-center gap-1.5 rounded-md border px-2.5 disabled:opacity-60 ${LOOKS[look]} ${className}`}
    />
  );
}

/** What files are chosen with: its own button looks like the others. */
export const FILES =
  "min-w-0 max-w-full text-dim file:mr-3 file:min-h-7 file:cursor-pointer file:rounded-md file:border file:border-line file:border-solid file:bg-surface file:px-2.5 file:text-text hover:file:bg-hover";

/** What text is typed into. */
export const FIELD = "min-h-7 rounded-md border border-line bg-surface px-2 text-text placeholder:text-dim";
