/** Who one is, how the page looks, and the way out. */

import type { User } from "../services/session";
import { chooseTheme, useChosenTheme } from "../theme";
import { Menu, MenuChoices, MenuItem, MenuLine } from "../ui/Menu";
import { AccountMark } from "./mark";

export function Account({ user, onLeave }: { user: User; onLeave: () => void }) {
  const theme = useChosenTheme();
  return (
    <Menu
      trigger={
        <>
          <AccountMark user={user} />
          <span className="sr-only">: appearance, log out</span>
        </>
      }
    >
      <MenuChoices
        label="Appearance"
        value={theme}
        choices={{ system: "As the system", light: "Light", dark: "Dark" }}
        onChange={chooseTheme}
      />
      <MenuLine />
      <MenuItem onSelect={onLeave}>Log out</MenuItem>
    </Menu>
  );
}
