/** The administration: people, groups, access tokens, the message to everyone, and tokens with which machines join. */

import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Suspense } from "react";
import { useCommands } from "../keys/commands";
import { lazy } from "../parts";
import { meQuery } from "../services/session";
import { Loading } from "../ui/notices";
import { Page } from "../ui/Page";
import { NotFound } from "./notfound";

const route = getRouteApi("/shell/admin/{-$part}");

/** `hidden`: what others may not even see. */
const PARTS = {
  users: { title: "Users", Part: lazy(() => import("./admin/Users")) },
  groups: { title: "Groups", Part: lazy(() => import("./admin/Groups")) },
  tokens: { title: "Access tokens", Part: lazy(() => import("./admin/Tokens")), hidden: "everyone's access tokens" },
  message: { title: "Message", Part: lazy(() => import("./admin/Message")), hidden: "what message is set" },
  "join-tokens": {
    title: "Join tokens",
    Part: lazy(() => import("./admin/JoinTokens")),
    hidden: "with which tokens machines join",
  },
} as const;

export function AdminPage() {
  const { part = "users" } = route.useParams();
  const navigate = route.useNavigate();
  const me = useSuspenseQuery(meQuery).data;
  useCommands(
    me.admin
      ? Object.entries(PARTS).map(([to, { title }]) => ({
          title: `Administration: ${title}`,
          run: () => void navigate({ to: "/admin/{-$part}", params: { part: to }, search: {} }),
        }))
      : [],
  );
  const chosen = Object.hasOwn(PARTS, part) ? PARTS[part as keyof typeof PARTS] : undefined;
  if (!chosen) return <NotFound />;
  const hidden = "hidden" in chosen && !me.admin ? chosen.hidden : undefined;
  return (
    <Page title="Administration" name={chosen.title} full={part === "users" || part === "tokens"}>
      <nav aria-label="Administration" className="flex flex-wrap gap-1 border-line border-b">
        {Object.entries(PARTS).map(([to, { title }]) => (
          <Link
            key={to}
            to="/admin/{-$part}"
            params={{ part: to }}
            className="flex min-h-8 items-center border-transparent border-b-2 px-2 text-dim hover:text-text"
            activeOptions={{ includeSearch: false }}
            activeProps={{ className: "!border-accent !text-text font-medium" }}
          >
            {title}
          </Link>
        ))}
      </nav>
      {hidden ? (
        <p>
          Only administrators can see {hidden}. Your own tokens are in your{" "}
          <Link to="/settings" className="text-accent underline">
            settings
          </Link>
          .
        </p>
      ) : (
        <Suspense fallback={<Loading what={chosen.title.toLowerCase()} />}>
          <chosen.Part may={me.admin} />
        </Suspense>
      )}
    </Page>
  );
}
