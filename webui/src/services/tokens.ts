/** Access tokens of people, and join tokens of machines. A token itself is in one answer alone, and is kept nowhere. */

import { answered, api } from "./client";
import { type Query, query } from "./live";
import type { Once } from "./once";
import type { components } from "./schema";
import { newsOf } from "./stream/news";

export type Token = components["schemas"]["TokenInfo"];
export type JoinToken = components["schemas"]["JoinTokenView"];
type TokenSort = components["schemas"]["TokenSortBy"];

/** Rows that are asked for at once. */
export const TOKENS = 100;

const SORTS: Record<string, TokenSort> = {
  id: "SORT_BY_UNSPECIFIED",
  user: "SORT_BY_USER_ID",
  description: "SORT_BY_DESCRIPTION",
  created: "SORT_BY_CREATED_AT",
  expires: "SORT_BY_EXPIRY",
};

/** What of a list of tokens stands in the address. */
export interface TokenSearch {
  /** Whose; of an administrator nothing means everyone's. */
  user?: string;
  sort?: string;
  inactive?: boolean;
}

export function tokensQuery(
  search: TokenSearch,
  offset: number,
  limit: number,
): Query<{ rows: Token[]; total: number }> {
  const { user, sort = "-id", inactive } = search;
  return query({
    queryKey: ["tokens", { user, sort, inactive }, offset, limit],
    queryFn: async ({ signal }) => {
      const asked = {
        ...{ offset, limit, username: user, showInactive: inactive },
        sortBy: SORTS[sort.replace(/^-/, "")] ?? "SORT_BY_UNSPECIFIED",
        orderBy: sort.startsWith("-") ? ("ORDER_BY_DESC" as const) : ("ORDER_BY_ASC" as const),
      };
      const reply = await answered(api.GET("/api/v1/tokens", { params: { query: asked }, signal }));
      return { rows: reply.tokenInfo, total: reply.pagination.total ?? 0 };
    },
    topics: ["tokens"],
    news: (change) => newsOf(["token"], change),
  });
}

export interface NewToken {
  userId: number;
  /** Days; undefined: as long as is allowed. */
  days?: number;
  description: string;
  /** Of whoever asks: for a token that outlives a login which is not new any more. */
  currentPassword?: string;
}

/** The token itself: the only time that it is told. */
export async function createToken({ days, ...token }: NewToken, once: Once): Promise<string> {
  const lifespan = days === undefined ? "-1" : `${24 * days}h`;
  const body = { ...token, lifespan, isHashed: false };
  return (await once.send(body, (headers) => answered(api.POST("/api/v1/tokens", { body, headers })))).token;
}

/** What a token is said to be for by now. */
export async function describedNow(id: number): Promise<string> {
  const params = { query: { tokenIds: [id], showInactive: true } };
  return (await answered(api.GET("/api/v1/tokens", { params }))).tokenInfo[0]?.description ?? "";
}

/** `former`: what it says now. Raises Refused, with 412 where it says something else by now. */
export async function describeToken(id: number, description: string, former: string): Promise<void> {
  const params = { path: { tokenId: id } };
  const body = { description, setRevoked: false, expected: { description: former } };
  await answered(api.PATCH("/api/v1/tokens/{tokenId}", { params, body }));
}

export async function revokeToken(id: number): Promise<void> {
  const params = { path: { tokenId: id } };
  await answered(api.PATCH("/api/v1/tokens/{tokenId}", { params, body: { setRevoked: true } }));
}

export function joinTokensQuery(inactive: boolean): Query<{ rows: JoinToken[]; byFile: boolean }> {
  return query({
    queryKey: ["join-tokens", inactive],
    queryFn: async ({ signal }) => {
      const params = { query: { showInactive: inactive } };
      const reply = await answered(api.GET("/api/v1/join-tokens", { params, signal }));
      return { rows: [...reply.joinTokens].reverse(), byFile: reply.joinByFile };
    },
    topics: ["join-tokens"],
    news: (change) => newsOf(["join_token"], change),
  });
}

export interface NewJoinToken {
  description: string;
  agentId?: string;
  /** How many agents it lets in; -1: any number. */
  uses: number;
  /** As in `90m`, `2d`. */
  lifespan: string;
}

/** The token itself: the only time that it is told. */
export async function createJoinToken(body: NewJoinToken, once: Once): Promise<string> {
  return (await once.send(body, (headers) => answered(api.POST("/api/v1/join-tokens", { body, headers })))).token;
}

export async function revokeJoinToken(id: number): Promise<void> {
  await answered(api.DELETE("/api/v1/join-tokens/{joinTokenId}", { params: { path: { joinTokenId: id } } }));
}
