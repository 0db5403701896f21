/** Who is looking: log in, log out, me. The session is a cookie that no script can read. */

import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client";
import type { components } from "./schema";

export type User = components["schemas"]["User"];

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: async ({ signal }): Promise<User> => remembered((await answered(api.GET("/api/v1/me", { signal }))).user),
  staleTime: 60_000,
  retry: false,
});

export const masterQuery = queryOptions({
  queryKey: ["master"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/master", { signal })),
  staleTime: 300_000,
});

/** Who was logged in here last: no proof of anything, so that another's login is noticed. */
const LAST = "tenax.last-user";

export function lastUser(): string {
  try {
    return localStorage.getItem(LAST) ?? "";
  } catch {
    return "";
  }
}

function remembered(user: User): User {
  try {
    localStorage.setItem(LAST, user.username);
  } catch {
    // A browser that keeps nothing.
  }
  return user;
}

export async function login(username: string, password: string): Promise<User> {
  const reply = await answered(api.POST("/api/v1/auth/login", { body: { username, password, isHashed: false } }));
  return remembered(reply.user);
}

/** A ticket of `tenax open` becomes this browser's login. */
export async function tradeTicket(ticket: string): Promise<User> {
  return remembered((await answered(api.POST("/api/v1/auth/ticket", { body: { ticket } }))).user);
}

export async function logout(): Promise<void> {
  await answered(api.POST("/api/v1/auth/logout"));
}

export function nameOf(user: { username: string; displayName?: string | null }): string {
  return user.displayName || user.username;
}
