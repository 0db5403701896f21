/** Everyone's access tokens. */

import { getRouteApi } from "@tanstack/react-router";
import { lazy } from "../../parts";
import { Button } from "../../ui/Button";
import { openDialog } from "../../ui/overlays";
import { SearchField } from "../../ui/SearchField";
import { Tokens } from "../settings/Tokens";

const TokenDialog = lazy(() => import("../../actions/TokenDialog"));
const route = getRouteApi("/shell/admin/{-$part}");

export default function EveryonesTokens(_: { may: boolean }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { user, sort, inactive } = search;
  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        <SearchField
          label="User name"
          value={user ?? ""}
          onChange={(to) => void navigate({ search: { ...search, user: to || undefined }, replace: true })}
        />
        <label className="flex min-h-7 items-center gap-1.5">
          <input
            type="checkbox"
            checked={inactive ?? false}
            onChange={(event) => void navigate({ search: { ...search, inactive: event.target.checked || undefined } })}
          />
          Include revoked and expired
        </label>
        <Button onClick={() => openDialog((close) => <TokenDialog others onClose={close} />)}>New token</Button>
      </div>
      <Tokens
        everyones
        search={{ user, sort, inactive }}
        onSort={(to) => void navigate({ search: { ...search, sort: to } })}
      />
    </>
  );
}
