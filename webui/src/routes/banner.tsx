/** What administrators say to everyone, above every page; it comes and goes by itself. */

import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { ahead, useLive } from "../services/live";
import { shownMessageQuery } from "../services/message";

/** Browsers count no longer time than that. */
const LONGEST_MS = 2 ** 31 - 1;

/** Ask for it before it is drawn. */
export function lookAhead(client: QueryClient): void {
  ahead(client, shownMessageQuery);
}

export function Banner({ first }: { first?: string }) {
  const client = useQueryClient();
  // Nobody asks for it by a timer where there is no stream.
  const shown = useLive(shownMessageQuery, () => true).data;
  const next = shown?.next ?? shown?.now?.endTime;
  useEffect(() => {
    if (!next) return;
    const wait = Date.parse(next) - Date.now();
    const again = () => void client.invalidateQueries({ queryKey: shownMessageQuery.queryKey });
    // A clock that goes ahead of the master's asks once too early, and not over and over.
    const timer = setTimeout(again, Math.min(LONGEST_MS, Math.max(1000, wait + 500)));
    return () => clearTimeout(timer);
  }, [next, client]);
  return <Message text={shown ? shown.now?.message : first} />;
}

export function Message({ text }: { text?: string }) {
  if (!text) return null;
  return (
    <p role="status" className="whitespace-pre-wrap break-words border-line border-b bg-raised px-4 py-2">
      <span aria-hidden="true" className="text-wait">
        !{" "}
      </span>
      {text}
    </p>
  );
}
