/** Access tokens, those of one person or all: what each is for and how long it is good; the tokens themselves are nowhere. */

import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { Confirm } from "../../actions/Confirm";
import { eachOf, reportEach } from "../../actions/each";
import { usePicked } from "../../actions/picked";
import { count } from "../../format";
import { useCommands } from "../../keys/commands";
import { keysOf } from "../../keys/table";
import { lazy } from "../../parts";
import {
  describedNow,
  describeToken,
  revokeToken,
  TOKENS,
  type Token,
  type TokenSearch,
  tokensQuery,
} from "../../services/tokens";
import { Button } from "../../ui/Button";
import { type Column, Grid } from "../../ui/Grid";
import { Empty, Loading, Problem } from "../../ui/notices";
import { closeDialog, openDialog } from "../../ui/overlays";
import { Moment, Until } from "../../ui/values";
import { useWindows } from "../../ui/windows";
import { visible } from "../../visible";

const TextDialog = lazy(() => import("../../actions/TextDialog"));

export function Tokens(props: {
  search: TokenSearch;
  onSort: (sort: string) => void;
  /** Whose each is, is said. */
  everyones?: boolean;
}) {
  const { search } = props;
  const client = useQueryClient();
  const { user, sort = "-id", inactive } = search;
  const windowOf = useCallback(
    (offset: number) => tokensQuery({ user, sort, inactive }, offset, TOKENS),
    [user, sort, inactive],
  );
  const found = useWindows<Token>(windowOf, TOKENS);
  const { selecting, picked } = usePicked<Token>("token", {
    windowOf,
    size: TOKENS,
    total: found.total ?? 0,
    rowAt: found.rowAt,
  });
  const refresh = () => client.invalidateQueries({ queryKey: ["tokens"] });
  const revoke = async () => {
    closeDialog();
    const results = await eachOf([...picked], revokeToken);
    reportEach(results, { past: "Revoked", noun: ["token", "tokens"] });
    selecting.none();
    await refresh();
  };
  const ask = () =>
    openDialog((close) => (
      <Confirm
        title={picked.size === 1 ? "Revoke this token?" : `Revoke ${count(picked.size)} tokens?`}
        names={found
          .loaded()
          .filter((row) => picked.has(row.id))
          .map(nameOf)}
        size={picked.size}
        warning="Whatever uses it is refused from now on, and tokens that were made with it end, too. This cannot be undone."
        yes="Revoke"
        onYes={() => void revoke()}
        onNo={close}
      />
    ));
  const describe = (token: Token) =>
    openDialog((close) => (
      <TextDialog
        title={`Token ${token.id}`}
        label="What it is for"
        yes="Save"
        value={token.description ?? ""}
        onClose={close}
        read={() => describedNow(token.id)}
        onSubmit={async (description, former) => {
          await describeToken(token.id, description, former);
          await refresh();
        }}
      />
    ));
  const columns = [ID, ...(props.everyones ? [USER] : []), forColumn(describe), ...REST];
  useCommands(
    picked.size === 0
      ? []
      : [
          { name: "delete", title: `Revoke ${count(picked.size)} selected tokens`, run: ask },
          { name: "leave", title: "Clear selection", run: selecting.none },
        ],
  );
  if (found.error && found.total === undefined) return <Problem error={found.error} retry={found.retry} />;
  if (found.total === undefined) return <Loading what="tokens" />;
  if (found.total === 0)
    return (
      <Empty title="No access tokens" command="tenax token create --description 'nightly job'">
        A token lets a program act as you for some days. At the command line:
      </Empty>
    );
  return (
    <>
      <div className="flex min-h-7 flex-wrap items-center gap-2">
        <p aria-live="polite" className="text-dim">
          {picked.size > 0
            ? `${count(picked.size)} selected`
            : "Press Enter to say what a token is for; select tokens to revoke them."}
        </p>
        {picked.size > 0 && (
          <Button look="danger" aria-keyshortcuts={keysOf("delete")} onClick={ask}>
            Revoke
          </Button>
        )}
      </div>
      <Grid
        label="Access tokens"
        className={props.everyones ? "" : found.total > 6 ? "h-80 flex-none" : "flex-none"}
        columns={columns}
        minWidth={props.everyones ? 800 : 640}
        total={found.total}
        rowAt={found.rowAt}
        keyOf={(row) => row.id}
        onView={found.onView}
        stale={found.stale}
        sort={sort}
        onSort={props.onSort}
        onOpen={describe}
        selecting={selecting}
      />
    </>
  );
}

function nameOf(token: Token): string {
  return `${token.id} of ${token.username}: ${token.description || "no description"}`;
}

/** Whether it is good: by a word and a shape. */
function Standing({ token }: { token: Token }) {
  if (token.revoked) return <span className="text-off">⊘ Revoked</span>;
  if (new Date(token.expiry).getTime() <= Date.now()) return <span className="text-off">⊘ Expired</span>;
  return <span className="text-ok">✓ Valid</span>;
}

const ID: Column<Token> = {
  id: "id",
  title: "Token",
  width: "80px",
  align: "right",
  sort: "id",
  cell: (row) => row.id,
};
const USER: Column<Token> = {
  id: "user",
  title: "User",
  width: "160px",
  sort: "user",
  cell: (row) => <span title={row.username}>{row.username}</span>,
};
/** The mouse changes what it says by a click on it, Enter by the row. */
function forColumn(describe: (token: Token) => void): Column<Token> {
  return {
    id: "description",
    title: "For",
    width: "minmax(160px, 1fr)",
    sort: "description",
    cell: (row) => (
      <button
        type="button"
        tabIndex={-1}
        title={visible(row.description ?? "")}
        className="max-w-full truncate hover:underline"
        onClick={() => describe(row)}
      >
        {visible(row.description || "–")}
      </button>
    ),
  };
}

const REST: Column<Token>[] = [
  { id: "state", title: "State", width: "110px", cell: (row) => <Standing token={row} /> },
  { id: "created", title: "Created", width: "110px", sort: "created", cell: (row) => <Moment at={row.createdAt} /> },
  { id: "expires", title: "Ends", width: "130px", sort: "expires", cell: (row) => <Until at={row.expiry} /> },
];
