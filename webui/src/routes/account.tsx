/** Who one is, how the page looks, and the way out. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { outcome } from "../actions/perform";
import { chooseDensity, chosenDensity } from "../density";
import type { User } from "../services/session";
import { keepTheme, keptAppearance, settingsQuery } from "../services/settings";
import { chooseTheme, chosenTheme, useChosenTheme } from "../theme";
import { Menu, MenuChoices, MenuItem, MenuLine } from "../ui/Menu";
import { AccountMark } from "./mark";

/** What somebody chose on another machine holds here, too. */
function useKeptAppearance(): void {
  const settings = useQuery(settingsQuery).data;
  useEffect(() => {
    const { theme, density } = keptAppearance(settings ?? {});
    if (theme && theme !== chosenTheme()) chooseTheme(theme);
    if (density && density !== chosenDensity()) chooseDensity(density);
  }, [settings]);
}

export function Account({ user, onLeave }: { user: User; onLeave: () => void }) {
  const theme = useChosenTheme();
  const client = useQueryClient();
  const navigate = useNavigate();
  useKeptAppearance();
  return (
    <Menu
      trigger={
        <>
          <AccountMark user={user} />
          <span className="sr-only">: settings, appearance, log out</span>
        </>
      }
    >
      <MenuItem onSelect={() => void navigate({ to: "/settings" })}>Settings</MenuItem>
      <MenuLine />
      <MenuChoices
        label="Appearance"
        value={theme}
        choices={{ system: "Same as the system", light: "Light", dark: "Dark" }}
        onChange={(chosen) => void outcome(keepTheme(client, chosen), "Keep the appearance")}
      />
      <MenuLine />
      <MenuItem onSelect={onLeave}>Log out</MenuItem>
    </Menu>
  );
}
