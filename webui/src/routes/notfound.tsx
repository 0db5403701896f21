import { Link, useLocation } from "@tanstack/react-router";
import { Page } from "../ui/Page";

/** An address that this page does not have. */
export function NotFound() {
  const { pathname } = useLocation();
  return (
    <Page title="There is no such page" name="Not found">
      <p className="break-words">
        Nothing here has the address <code className="font-mono">{pathname}</code>.
      </p>
      <ul className="flex list-disc flex-col gap-1 pl-5">
        {(
          [
            ["/", "Home"],
            ["/experiments", "All experiments"],
            ["/queue", "The queue"],
            ["/cluster", "The cluster"],
          ] as const
        ).map(([to, name]) => (
          <li key={to}>
            <Link to={to} className="text-accent underline">
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </Page>
  );
}
