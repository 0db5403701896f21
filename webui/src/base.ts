/** Where the page lies on its master: `/ui`, or below the prefix of a proxy. */

export const BASE = new URL(document.baseURI).pathname.replace(/\/$/, "");

/** An address of this page without what lies before it. */
export function withoutBase(href: string): string {
  return href.startsWith(BASE) ? href.slice(BASE.length) || "/" : href;
}

/** A step up, however it is written. */
const UP = /\/(?:\.|%2e){2}(?:\/|$)/i;

/** An address that is one of this page, for going back to after a login: whatever else was asked for leads home. */
export function ownAddress(next: string | undefined): string {
  const own = next?.startsWith("/") && !next.startsWith("//") && !/[\\\s]/.test(next) && !next.startsWith("/login");
  return own && next && !UP.test(next.split(/[?#]/, 1)[0] ?? "") ? next : "/";
}
