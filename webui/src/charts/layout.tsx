/** What arranges the charts of a page: a menu on each, and one for all of them; kept for whoever looks, by project. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { own } from "../own";
import { lazy } from "../parts";
import { keepLayout, type Layout, layoutOf, PLAIN, SIZES, type Size, stepped, toggledIn } from "../services/layouts";
import { settingsQuery } from "../services/settings";
import { Menu, MenuChoices, MenuItem, MenuLine } from "../ui/Menu";
import { openDialog, say } from "../ui/overlays";
import { visible } from "../visible";

const RangeDialog = lazy(() => import("./RangeDialog"));

export interface Laid {
  layout: Layout;
  /** What was kept has come. */
  ready: boolean;
  change: (layout: Layout) => void;
}

export function useLayout(projectId: number | undefined): Laid {
  const client = useQueryClient();
  const settings = useQuery(settingsQuery);
  return {
    layout: layoutOf(settings.data ?? {}, projectId),
    ready: !settings.isPending,
    change: (layout) =>
      void keepLayout(client, projectId, layout).catch((error) =>
        say({ text: `The layout was not saved: ${error instanceof Error ? error.message : error}` }),
      ),
  };
}

export const HEIGHTS: Record<Size, number> = { small: 120, medium: 190, large: 340 };
/** How many stand beside one another. */
export const COLUMNS: Record<Size, string> = {
  small: "grid-cols-[repeat(auto-fill,minmax(min(270px,100%),1fr))]",
  medium: "grid-cols-[repeat(auto-fill,minmax(min(360px,100%),1fr))]",
  large: "grid-cols-1",
};
const SIZE_WORDS: Record<Size, string> = { small: "Small charts", medium: "Medium charts", large: "Large charts" };

/** What of a page holds beyond the address once it is kept. */
export interface Manner {
  x?: "time";
  log?: boolean;
  smooth?: number;
}

interface LayoutMenuProps extends Laid {
  /** As the page is drawn now. */
  now: Manner;
  /** Metrics that are hidden and were reported. */
  hidden: string[];
}

export function LayoutMenu({ layout, change, now, hidden }: LayoutMenuProps) {
  const { x: _, log: __, smooth: ___, ...rest } = layout;
  return (
    <Menu framed label="Layout" trigger={<>Layout ▾</>}>
      <MenuChoices
        label="Size"
        value={layout.size ?? "medium"}
        choices={SIZE_WORDS}
        onChange={(size) => change({ ...layout, size: SIZES.find((each) => each === size && each !== "medium") })}
      />
      <MenuLine />
      <MenuItem onSelect={() => change({ ...rest, ...now })}>Save axis, scale and smoothing for the project</MenuItem>
      {hidden.slice(0, 20).map((name) => (
        <MenuItem key={name} onSelect={() => change({ ...layout, hidden: toggledIn(layout.hidden, name) })}>
          Show {visible(name)}
        </MenuItem>
      ))}
      {hidden.length > 1 && (
        <MenuItem onSelect={() => change({ ...layout, hidden: [] })}>Show all {hidden.length} hidden charts</MenuItem>
      )}
      <MenuLine />
      <MenuItem onSelect={() => change(PLAIN)}>Reset the layout</MenuItem>
    </Menu>
  );
}

interface ChartMenuProps extends Omit<Laid, "ready"> {
  /** Of the metric. */
  name: string;
  title: string;
  /** Names of all charts in their order. */
  shown: readonly string[];
}

export function ChartMenu({ name, title, layout, change, shown }: ChartMenuProps) {
  const isPinned = layout.pinned.includes(name);
  const range = own(layout.ranges, name);
  const step = (by: 1 | -1) => change(stepped(layout, shown, name, by));
  const limit = () =>
    openDialog((close) => (
      <RangeDialog
        title={`Values of ${title}`}
        range={range}
        onClose={close}
        onRange={(to) => {
          const { [name]: ____, ...ranges } = layout.ranges;
          change({ ...layout, ranges: to ? { ...ranges, [name]: to } : ranges });
        }}
      />
    ));
  return (
    <Menu label={`Arrange ${title}`} trigger={<span aria-hidden="true">⋯</span>}>
      <MenuItem onSelect={() => change({ ...layout, pinned: toggledIn(layout.pinned, name) })}>
        {isPinned ? "Unpin it" : "Pin it first"}
      </MenuItem>
      <MenuItem onSelect={() => step(-1)}>Earlier</MenuItem>
      <MenuItem onSelect={() => step(1)}>Later</MenuItem>
      <MenuItem onSelect={limit}>
        {range ? `Values ${range.low ?? "…"} to ${range.high ?? "…"}` : "Limit values…"}
      </MenuItem>
      <MenuLine />
      <MenuItem onSelect={() => change({ ...layout, hidden: toggledIn(layout.hidden, name) })}>Hide</MenuItem>
    </Menu>
  );
}
