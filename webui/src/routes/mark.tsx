import { nameOf, type User } from "../services/session";

/** A person: a letter and a name. */
export function AccountMark({ user }: { user: User }) {
  return (
    <>
      <span
        aria-hidden="true"
        className="flex size-5 shrink-0 items-center justify-center rounded-full border border-line text-sm uppercase"
      >
        {[...nameOf(user)][0]}
      </span>
      <span className="truncate max-md:sr-only">{nameOf(user)}</span>
    </>
  );
}
