/** From `tenax open`: the ticket in the fragment becomes a login. Where somebody else is logged in, or was last, they are
 *  asked first: another site may send a browser here with a ticket of its own user. */

import { useQueryClient } from "@tanstack/react-query";
import { Link, useRouter } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { BASE, ownAddress } from "../base";
import { lastUser, meQuery, tradeTicket, type User } from "../services/session";
import { Button } from "../ui/Button";

interface Offer {
  ticket: string;
  user: string;
  next: string;
}

/** What the fragment offers; it is taken out of the address, and out of the history, at once. */
function offered(): Offer | null {
  const fields = new URLSearchParams(location.hash.slice(1));
  history.replaceState(history.state, "", location.pathname);
  const ticket = fields.get("ticket");
  return ticket ? { ticket, user: fields.get("user") ?? "", next: ownAddress(fields.get("next") ?? undefined) } : null;
}

export function OpenPage() {
  const router = useRouter();
  const client = useQueryClient();
  const [offer] = useState(offered);
  const [other, setOther] = useState<User | null>(null);
  const [former, setFormer] = useState("");
  const [error, setError] = useState(offer ? "" : "This address is opened by the command tenax open.");
  const begun = useRef(false);

  const goOn = useCallback(() => router.history.replace(BASE + (offer?.next ?? "/")), [router, offer]);

  const trade = useCallback(async () => {
    if (!offer) return;
    try {
      const user = await tradeTicket(offer.ticket);
      client.clear();
      client.setQueryData(meQuery.queryKey, user);
      goOn();
    } catch (problem) {
      setOther(null);
      setFormer("");
      setError(problem instanceof Error ? problem.message : String(problem));
    }
  }, [offer, client, goOn]);

  useEffect(() => {
    document.title = "Tenax";
    if (!offer || begun.current) return;
    begun.current = true;
    client.fetchQuery({ ...meQuery, staleTime: 0 }).then(
      (me) => (me.username === offer.user ? goOn() : setOther(me)),
      () => {
        const last = lastUser();
        if (last === "" || last === offer.user) return trade();
        setFormer(last);
      },
    );
  }, [offer, client, goOn, trade]);

  return (
    <main className="flex min-h-full items-center justify-center p-4">
      <div className="flex w-full max-w-96 flex-col gap-3">
        <h1 className="font-semibold text-lg">Tenax</h1>
        {other && offer && (
          <>
            <p>
              This browser is logged in as <b>{other.username}</b>. Go on as <b>{offer.user}</b>?
            </p>
            <div className="flex gap-2">
              <Button look="primary" onClick={() => void trade()}>
                Go on as {offer.user}
              </Button>
              <Button onClick={goOn}>Stay {other.username}</Button>
            </div>
          </>
        )}
        {former && offer && (
          <>
            <p>
              In this browser <b>{former}</b> was logged in last. Log in as <b>{offer.user}</b>?
            </p>
            <div className="flex items-center gap-4">
              <Button look="primary" onClick={() => void trade()}>
                Log in as {offer.user}
              </Button>
              <Link to="/login" search={{ next: offer.next }} className="text-accent underline">
                Log in as {former}
              </Link>
            </div>
          </>
        )}
        {error && (
          <>
            <p role="alert" className="text-bad">
              {error}
            </p>
            <Link to="/login" search={{ next: offer?.next }} className="text-accent underline">
              Log in
            </Link>
          </>
        )}
        {!other && !former && !error && <p role="status">Opening ...</p>}
      </div>
    </main>
  );
}
