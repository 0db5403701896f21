/** Says when what is shown may be old: the connection is gone, or the page is. Data stay, and are dimmed. */

import { duration } from "../format";
import { useStanding } from "../services/live";
import { useNow } from "./now";

export function Connection() {
  const { link, outdated } = useStanding();
  return (
    <div className="pointer-events-none fixed right-3 bottom-3 z-20 flex flex-col items-end gap-2">
      <div role="status" className="contents">
        {link.state === "down" && <Down {...link} />}
      </div>
      {outdated && (
        <p className={LOOK}>
          The master was updated
          <button
            type="button"
            className="pointer-events-auto text-accent underline"
            onClick={() => window.location.reload()}
          >
            Reload the page
          </button>
        </p>
      )}
    </div>
  );
}

const LOOK = "flex items-center gap-2 rounded-md border border-line bg-raised px-3 py-1.5";

function Down({ heardAt, reason, refused }: { heardAt: number; reason: string; refused: boolean }) {
  if (refused) {
    return (
      <p className={`appears-later ${LOOK}`} title={reason}>
        Not live: refreshed now and then
      </p>
    );
  }
  return (
    <p className={`appears-later ${LOOK}`} title={reason}>
      <span aria-hidden="true" className="text-wait">
        ◌
      </span>
      <span>
        Reconnecting<span className="sr-only"> to the master</span>,
      </span>
      {/* Read out once, not with each second. */}
      <Age since={heardAt} />
      <Gone since={heardAt} />
    </p>
  );
}

/** After that a master that only restarts would be back. */
const RESTART_MS = 15_000;

function Gone({ since }: { since: number }) {
  const now = useNow(1000);
  if (now - since < RESTART_MS) return null;
  return (
    <span>
      Is the master stopped? On its machine <code>tenax up</code> starts it
    </span>
  );
}

function Age({ since }: { since: number }) {
  const now = useNow(1000);
  return (
    <span aria-hidden="true" className="text-dim">
      data from {duration((now - since) / 1000)} ago
    </span>
  );
}
