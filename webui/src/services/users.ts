/** People: who there is, their passwords, and the groups that they are in. */

import { answered, api } from "./client";
import { type Query, query, removing } from "./live";
import type { components } from "./schema";
import type { User } from "./session";
import { newsOf } from "./stream/news";

export type Group = components["schemas"]["Group"];
export type GroupDetails = components["schemas"]["GroupDetails"];
export type AgentUserGroup = components["schemas"]["AgentUserGroup"];
type UserSort = components["schemas"]["GetUsersSortBy"];

/** Rows that are asked for at once. */
export const USERS = 100;
/** Groups that are shown. */
export const GROUPS = 500;

const SORTS: Record<string, UserSort> = {
  name: "SORT_BY_USER_NAME",
  displayName: "SORT_BY_DISPLAY_NAME",
  admin: "SORT_BY_ADMIN",
  active: "SORT_BY_ACTIVE",
  seen: "SORT_BY_LAST_AUTH_TIME",
};

/** What of a list of users stands in the address. */
export interface UserSearch {
  q?: string;
  sort?: string;
  inactive?: boolean;
}

/** One window of them, by user name where no order is asked for. */
export function usersQuery(search: UserSearch, offset: number, limit: number): Query<{ rows: User[]; total: number }> {
  const { q, sort = "name", inactive } = search;
  return query({
    queryKey: ["users", { q, sort, inactive }, offset, limit],
    queryFn: async ({ signal }) => {
      const asked = {
        ...{ offset, limit, name: q, active: inactive ? undefined : true },
        sortBy: SORTS[sort.replace(/^-/, "")] ?? "SORT_BY_USER_NAME",
        orderBy: sort.startsWith("-") ? ("ORDER_BY_DESC" as const) : ("ORDER_BY_ASC" as const),
      };
      const reply = await answered(api.GET("/api/v1/users", { params: { query: asked }, signal }));
      return { rows: reply.users, total: reply.pagination.total ?? 0 };
    },
    topics: ["users"],
    news: (change) => newsOf(["user"], change),
  });
}

export interface NewUser {
  username: string;
  displayName: string;
  admin: boolean;
  agentUserGroup: AgentUserGroup | null;
}

export async function createUser(user: NewUser, password: string): Promise<User> {
  const body = { user: { ...user, id: 0, active: true, remote: false }, password, isHashed: false };
  return (await answered(api.POST("/api/v1/users", { body }))).user;
}

export interface UserChange {
  username?: string;
  displayName?: string;
  admin?: boolean;
  password?: string;
  /** That of whoever asks. */
  currentPassword?: string;
  agentUserGroup?: AgentUserGroup;
  /** Else it is refused, with 412. */
  expected?: Record<string, unknown>;
}

export async function readUser(userId: number): Promise<User> {
  return (await answered(api.GET("/api/v1/users/{userId}", { params: { path: { userId } } }))).user;
}

export async function changeUser(userId: number, change: UserChange): Promise<User> {
  const params = { path: { userId: userId } };
  return (await answered(api.PATCH("/api/v1/users/{userId}", { params, body: { ...change, isHashed: false } }))).user;
}

/** Each by itself: what was refused comes back with its reason. */
export async function activateUsers(ids: number[], activate: boolean): Promise<{ id: number; error: string }[]> {
  const body = { userIds: ids, activate };
  return (await answered(api.PATCH("/api/v1/users", { body }))).results.map(({ id, error }) => ({
    id,
    error: error ?? "",
  }));
}

export const groupsQuery = query({
  queryKey: ["groups"],
  queryFn: async ({ signal }) => {
    const reply = await answered(api.POST("/api/v1/groups/search", { body: { offset: 0, limit: GROUPS }, signal }));
    return { rows: reply.groups, total: reply.pagination.total ?? 0 };
  },
  topics: ["groups"],
  news: (change) => newsOf(["group"], change),
});

export function groupQuery(groupId: number): Query<GroupDetails> {
  return query({
    queryKey: ["group", groupId],
    queryFn: async ({ signal }) => {
      const params = { path: { groupId: groupId } };
      return (await answered(api.GET("/api/v1/groups/{groupId}", { params, signal }))).group;
    },
    // Its members are shown by their names.
    topics: ["groups", "users"],
    news: (change) => newsOf(["group"], change, groupId) ?? newsOf(["user"], change),
  });
}

export async function createGroup(name: string): Promise<GroupDetails> {
  return (await answered(api.POST("/api/v1/groups", { body: { name, addUsers: [] } }))).group;
}

export interface GroupChange {
  name?: string;
  addUsers?: number[];
  removeUsers?: number[];
  /** Else it is refused, with 412. */
  expected?: Record<string, unknown>;
}

export async function changeGroup(groupId: number, change: GroupChange): Promise<GroupDetails> {
  const params = { path: { groupId: groupId } };
  const body = { addUsers: [], removeUsers: [], ...change };
  return (await answered(api.PUT("/api/v1/groups/{groupId}", { params, body }))).group;
}

export async function deleteGroup(groupId: number): Promise<void> {
  const params = { path: { groupId: groupId } };
  await removing([groupQuery(groupId).queryKey], () => answered(api.DELETE("/api/v1/groups/{groupId}", { params })));
}

/** Raises Refused where nobody is called so. */
export async function userNamed(username: string): Promise<User> {
  const params = { path: { username } };
  return (await answered(api.GET("/api/v1/users/{username}/by-username", { params }))).user;
}
