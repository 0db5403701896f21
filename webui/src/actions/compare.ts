/** From what is selected to its comparison: trials themselves, or the best one of each experiment. */

import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { MAX_COMPARED } from "../services/comparing";
import { type Experiment, experimentsQuery, trialsQuery } from "../services/experiments";
import { say } from "../ui/overlays";
import { rememberRow } from "../ui/returning";
import { type Chosen, outcome } from "./perform";

/** Goes to the comparison of trials. */
export function useCompare(): (trials: Promise<number[]>) => void {
  const navigate = useNavigate();
  return (trials) =>
    void (async () => {
      rememberRow();
      const ids = await outcome(trials, "Compare");
      if (!ids) return;
      if (ids.length === 0) return say({ text: "There are no trials to compare yet" });
      await navigate({ to: "/compare", search: { trials: ids.join(",") } });
    })();
}

/** Goes to the comparison of the best trials of experiments. */
export function useCompareBest(chosen: Chosen): () => void {
  const client = useQueryClient();
  const compare = useCompare();
  return () => compare(bestTrials(client, chosen));
}

async function bestTrials(client: QueryClient, chosen: Chosen): Promise<number[]> {
  const experiments = (await all(client, chosen)).slice(0, MAX_COMPARED);
  const trials = await Promise.all(experiments.map((experiment) => bestTrial(client, experiment)));
  return trials.filter((trial) => trial !== undefined);
}

async function all(client: QueryClient, { target, known }: Chosen): Promise<Pick<Experiment, "id" | "bestTrialId">[]> {
  if ("ids" in target) {
    const byId = new Map(known.map((each) => [each.id, each]));
    return target.ids.map((id) => byId.get(id) ?? { id });
  }
  const { rows } = await client.fetchQuery(
    experimentsQuery(target.search, 0, Math.min(1000, MAX_COMPARED + target.without.length)),
  );
  return rows.filter((row) => !target.without.includes(row.id));
}

/** Of one without a validation its first trial; undefined: it has none. */
async function bestTrial(
  client: QueryClient,
  { id, bestTrialId }: Pick<Experiment, "id" | "bestTrialId">,
): Promise<number | undefined> {
  if (bestTrialId) return bestTrialId;
  return (await client.fetchQuery(trialsQuery(id, "SORT_BY_ID", false, 0, 1))).rows[0]?.id;
}
