/** The code that an experiment was submitted with. */

import { queryOptions } from "@tanstack/react-query";
import { answered, api, MASTER, request } from "./client";
import type { components } from "./schema";

export type FileNode = components["schemas"]["FileNode"];

/** Larger files are not shown, only downloaded. */
export const MAX_SHOWN = 1024 * 1024;

/** It never changes. */
export function treeQuery(experimentId: number) {
  return queryOptions({
    queryKey: ["code", experimentId],
    queryFn: async ({ signal }): Promise<FileNode[]> => {
      const params = { path: { experimentId } };
      return (await answered(api.GET("/api/v1/experiments/{experimentId}/file_tree", { params, signal }))).files;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function archiveAddress(experimentId: number): string {
  return new URL(`experiments/${experimentId}/model_def`, MASTER).href;
}

export function fileAddress(experimentId: number, path: string): string {
  return new URL(`experiments/${experimentId}/file/download?path=${encodeURIComponent(path)}`, MASTER).href;
}

/** Its text; undefined: it is none. */
export function fileQuery(experimentId: number, path: string) {
  return queryOptions({
    queryKey: ["code", experimentId, path],
    queryFn: async ({ signal }) => {
      const reply = await request(fileAddress(experimentId, path), { signal });
      return { text: textOf(new Uint8Array(await reply.arrayBuffer())) };
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** What bytes say; undefined: they are no text. */
export function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** All files below, with their whole paths. */
export function filesOf(nodes: readonly FileNode[]): FileNode[] {
  return nodes.flatMap((node) => (node.isDir ? filesOf(node.files ?? []) : [node]));
}
