/** A menu behind a button: Radix does the keys and the focus, we the look. */

import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { Caps } from "./Caps";

export function Menu(props: { trigger: ReactNode; children: ReactNode; label?: string; framed?: boolean }) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger
        aria-label={props.label}
        className={`flex min-h-7 min-w-0 items-center gap-1.5 rounded-md px-2 hover:bg-hover ${props.framed ? "border border-line bg-surface" : ""}`}
      >
        {props.trigger}
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          sideOffset={4}
          collisionPadding={8}
          className="z-20 min-w-44 rounded-md border border-line bg-surface p-1"
        >
          {props.children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

const ITEM = "flex min-h-7 items-center gap-2 rounded px-2 outline-none data-highlighted:bg-hover";

/** What cannot be done now, and why: it can be reached and read, and does nothing. */
export function MenuReason({ children, why }: { children: ReactNode; why: string }) {
  return (
    <DropdownMenu.Item
      aria-disabled
      className={`${ITEM} max-w-64 flex-col items-start gap-0 py-1 text-dim`}
      onSelect={(event) => event.preventDefault()}
    >
      {children}
      <span className="text-sm">{why}</span>
    </DropdownMenu.Item>
  );
}

export function MenuItem(props: { onSelect: () => void; children: ReactNode; keys?: string; danger?: boolean }) {
  return (
    <DropdownMenu.Item
      className={`${ITEM} ${props.danger ? "text-bad" : ""}`}
      onSelect={props.onSelect}
      aria-keyshortcuts={props.keys}
    >
      <span className="flex-1">{props.children}</span>
      {props.keys && <Caps keys={props.keys} />}
    </DropdownMenu.Item>
  );
}

export function MenuChoices<T extends string>(props: {
  label: string;
  value: T;
  choices: Record<T, string>;
  onChange: (value: T) => void;
}) {
  return (
    <DropdownMenu.RadioGroup value={props.value} onValueChange={(value) => props.onChange(value as T)}>
      <DropdownMenu.Label className="px-2 py-1 text-dim text-sm">{props.label}</DropdownMenu.Label>
      {(Object.keys(props.choices) as T[]).map((value) => (
        <DropdownMenu.RadioItem key={value} value={value} className={ITEM}>
          <span className="w-3.5">
            <DropdownMenu.ItemIndicator>✓</DropdownMenu.ItemIndicator>
          </span>
          {props.choices[value]}
        </DropdownMenu.RadioItem>
      ))}
    </DropdownMenu.RadioGroup>
  );
}

export function MenuLine() {
  return <DropdownMenu.Separator className="my-1 h-px bg-line" />;
}
