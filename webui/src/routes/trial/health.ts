/** Whether a trial is well, as it is now. */

import { useLive } from "../../services/live";
import { healthQuery } from "../../services/trials";
import { useAgainIn } from "../../ui/again";

export function useHealth(trialId: number) {
  const asked = useLive(healthQuery(trialId));
  useAgainIn(asked.data?.silentIn, asked.dataUpdatedAt, asked.refetch);
  return asked;
}
