/** The configuration of a trial. */

import { experimentQuery, type Trial } from "../../services/experiments";
import { useLive } from "../../services/live";
import { Copy } from "../../ui/Copy";
import { Loading, Problem } from "../../ui/notices";
import { Section } from "../../ui/Page";
import { yaml } from "../../yaml";

export function Configuration({ trial }: { trial: Trial }) {
  const shown = useLive(experimentQuery(trial.experimentId), () => true);
  if (shown.error && !shown.data) return <Problem error={shown.error} retry={() => void shown.refetch()} />;
  if (!shown.data) return <Loading what="the configuration" />;
  const { hyperparameters, ...rest } = (shown.data.experiment.config ?? {}) as Record<string, unknown>;
  return (
    <>
      <Text title="Hyperparameters of this trial" text={yaml(trial.hparams)} />
      <Text
        title="Configuration of its experiment"
        text={yaml(hyperparameters === undefined ? rest : { hyperparameters, ...rest })}
      />
    </>
  );
}

function Text({ title, text }: { title: string; text: string }) {
  return (
    <Section title={title} aside={<Copy text={text} />}>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard.
        tabIndex={0}
        className="overflow-x-auto rounded-md border border-line bg-sunken p-3 font-mono text-sm"
      >
        {text}
      </pre>
    </Section>
  );
}
