/** Tokens with which machines join the cluster. */

import { useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Confirm } from "../../actions/Confirm";
import { outcome } from "../../actions/perform";
import { count } from "../../format";
import { lazy } from "../../parts";
import { useLive } from "../../services/live";
import { type JoinToken, joinTokensQuery, revokeJoinToken } from "../../services/tokens";
import { Button } from "../../ui/Button";
import { Empty, Loading, Problem } from "../../ui/notices";
import { closeDialog, openDialog, say } from "../../ui/overlays";
import { Table } from "../../ui/Table";
import { Moment, Until } from "../../ui/values";
import { visible } from "../../visible";

const JoinTokenDialog = lazy(() => import("../../actions/JoinTokenDialog"));
const route = getRouteApi("/shell/admin/{-$part}");

export default function JoinTokens(_: { may: boolean }) {
  const { inactive } = route.useSearch();
  const navigate = route.useNavigate();
  const tokens = useLive(joinTokensQuery(inactive ?? false));
  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        <Button onClick={() => openDialog((close) => <JoinTokenDialog onClose={close} />)}>New join token</Button>
        <label className="flex min-h-7 items-center gap-1.5">
          <input
            type="checkbox"
            checked={inactive ?? false}
            onChange={(event) => void navigate({ search: { inactive: event.target.checked || undefined } })}
          />
          Include used up, revoked and expired
        </label>
        {tokens.data?.byFile && (
          <p className="text-dim">Machines that can read the master&apos;s file join with that one, too.</p>
        )}
      </div>
      {tokens.error && !tokens.data ? (
        <Problem error={tokens.error} retry={() => void tokens.refetch()} />
      ) : !tokens.data ? (
        <Loading what="join tokens" />
      ) : tokens.data.rows.length === 0 ? (
        <Empty title="No join token is valid now" command="tenax agent join-token create">
          A machine shows one once to join, and is a member from then on. At the command line:
        </Empty>
      ) : (
        <Table label="Join tokens" rows={tokens.data.rows} keyOf={(token) => token.id} columns={COLUMNS} />
      )}
    </>
  );
}

function Revoke({ token }: { token: JoinToken }) {
  const client = useQueryClient();
  const revoke = async () => {
    closeDialog();
    const done = await outcome(
      revokeJoinToken(token.id).then(() => true),
      `Revoke join token ${token.id}`,
    );
    if (done) say({ text: `Revoked join token ${token.id}` });
    await client.invalidateQueries({ queryKey: ["join-tokens"] });
  };
  const ask = () =>
    openDialog((close) => (
      <Confirm
        title={`Revoke join token ${token.id}?`}
        names={token.description ? [token.description] : []}
        size={1}
        warning="No more agents can join with it; those that have joined stay. This cannot be undone."
        yes="Revoke"
        onYes={() => void revoke()}
        onNo={close}
      />
    ));
  if (!token.good) return "–";
  return (
    <Button aria-label={`Revoke join token ${token.id}`} onClick={ask}>
      Revoke
    </Button>
  );
}

const COLUMNS = [
  { id: "id", title: "Token", align: "right" as const, cell: (token: JoinToken) => token.id },
  { id: "for", title: "For", wide: true, cell: (token: JoinToken) => visible(token.description || "–") },
  { id: "agent", title: "Agent", cell: (token: JoinToken) => token.agentId ?? "any" },
  {
    id: "uses",
    title: "Agents left",
    align: "right" as const,
    cell: (token: JoinToken) => (token.usesLeft < 0 ? "any number" : count(token.usesLeft)),
  },
  {
    id: "state",
    title: "State",
    cell: (token: JoinToken) =>
      token.good ? (
        <span className="text-ok">✓ Valid</span>
      ) : (
        <span className="text-off">⊘ {token.revoked ? "Revoked" : "Used up or expired"}</span>
      ),
  },
  { id: "made", title: "Created", cell: (token: JoinToken) => <Moment at={token.createdAt} /> },
  { id: "ends", title: "Ends", cell: (token: JoinToken) => <Until at={token.expiry} /> },
  { id: "change", title: "Change", cell: (token: JoinToken) => <Revoke token={token} /> },
];
