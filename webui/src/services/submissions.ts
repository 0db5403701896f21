/** Experiments before there are any: checked by the master, looked ahead with, submitted. */

import { answered, api } from "./client";
import type { Once } from "./once";
import type { components } from "./schema";

export type Sent = components["schemas"]["CreateExperimentResponse"];
export type Forecast = components["schemas"]["StartForecast"];
export type CodeFile = components["schemas"]["File"];

/** What is to be submitted; without code its own is that of the experiment it is forked from. */
export interface Submission {
  config: string;
  projectId: number;
  template?: string;
  parentId?: number;
  code?: CodeFile[];
}

function bodyOf({ config, projectId, template, parentId, code }: Submission) {
  return {
    config,
    projectId,
    template: template || null,
    parentId: parentId ?? null,
    modelDefinition: code ?? [],
    unmanaged: false,
  };
}

/** What a configuration may hold, as JSON Schema. */
export const configSchemaQuery = {
  queryKey: ["config schema"],
  queryFn: async () => (await answered(api.GET("/api/v1/config-schemas/experiment"))).jsonSchema,
  staleTime: Number.POSITIVE_INFINITY,
};

/** How many trials would train for how long. */
export interface Ahead {
  count: number;
  length: string;
}

/** What the master makes of a configuration: what it would be, what it says of it, and the search. */
export interface Checked {
  sent: Sent;
  ahead: Ahead[];
}

/** Raises Refused with all that is wrong. Code is not sent along: it is checked when it is submitted. */
export async function check(submission: Submission, signal?: AbortSignal): Promise<Checked> {
  const asked = { ...bodyOf({ ...submission, code: undefined }), validateOnly: true, activate: false };
  const sent = await answered(api.POST("/api/v1/experiments", { body: asked, signal }));
  const body = { config: sent.config, seed: 0 };
  const { summary } = await answered(api.POST("/api/v1/preview-hp-search", { body, signal }));
  const ahead = summary.trials.map(({ count, unit }) => ({
    count,
    length: unit.maxLength ? "as long as it takes" : `${unit.value ?? 0} ${unit.name ?? ""}`.trim(),
  }));
  return { sent, ahead };
}

export async function submit(submission: Submission, once: Once): Promise<Sent> {
  const body = { ...bodyOf(submission), validateOnly: false, activate: true };
  return once.send(body, (headers) => answered(api.POST("/api/v1/experiments", { body, headers })));
}
