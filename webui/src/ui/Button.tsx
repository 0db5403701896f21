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

/** What text is typed into. */
export const FIELD = "min-h-7 rounded-md border border-line bg-surface px-2 text-text placeholder:text-dim";
