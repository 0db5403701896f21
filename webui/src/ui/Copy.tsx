/** Copies a text; also where the page is no secure context, and the browser offers no clipboard. */

import { useState } from "react";
import { Button } from "./Button";

/** Returns whether it could. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.style.position = "fixed";
    field.style.opacity = "0";
    // What lies under a dialog can neither be selected nor copied.
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

export function Copy({ text }: { text: string }) {
  const [said, say] = useState("Copy");
  return (
    <Button onClick={async () => say((await copy(text)) ? "Copied" : "Select it and press Ctrl+C")}>
      <span aria-live="polite">{said}</span>
    </Button>
  );
}
