/** Creates a webhook: where it sends, how that looks, and what it is told of. */

import { useRef, useState } from "react";
import { TOLD_MACHINES, TOLD_STATES, wordOf } from "../routes/webhooks/words";
import { Once } from "../services/once";
import { createWebhook, type NewWebhook, type Trigger, type Webhook } from "../services/webhooks";
import type { Workspace } from "../services/workspaces";
import { FIELD } from "../ui/Button";
import type { Blame } from "../ui/blame";
import { Field } from "../ui/Field";
import { FormDialog } from "../ui/FormDialog";

const BLAME: Blame = { pattern: /condition\.regex/, told: /triggers/, name: /^name/, url: /url/ };
const CHECKBOX = "flex min-h-7 items-center gap-1.5";

export default function WebhookDialog(props: {
  /** Whether it may be of all workspaces. */
  everywhere: boolean;
  /** Those of which it may be. */
  workspaces: Workspace[];
  onClose: () => void;
  onDone: (made: Webhook) => void;
}) {
  const { everywhere, workspaces } = props;
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [slack, setSlack] = useState(false);
  const [where, setWhere] = useState(everywhere ? "" : String(workspaces[0]?.id ?? ""));
  const [named, setNamed] = useState(false);
  const [states, setStates] = useState<readonly string[]>(["COMPLETED", "ERROR"]);
  const [pattern, setPattern] = useState("");
  const [alerts, setAlerts] = useState(false);
  const [machines, setMachines] = useState<readonly string[]>([]);
  // Machines belong to no workspace, and to no experiment that could name it.
  const ofMachines = where === "" && !named && !alerts;
  const once = useRef(new Once());
  const submit = async () => {
    const triggers: Trigger[] = [
      ...states.map((state) => ({
        triggerType: "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE" as const,
        condition: { state },
      })),
      ...(pattern ? [{ triggerType: "TRIGGER_TYPE_TASK_LOG" as const, condition: { regex: pattern } }] : []),
      ...(ofMachines ? machines : []).map((event) => ({
        triggerType: "TRIGGER_TYPE_MACHINE" as const,
        condition: { event },
      })),
      ...(alerts ? [{ triggerType: "TRIGGER_TYPE_CUSTOM" as const, condition: {} }] : []),
    ];
    const asked: NewWebhook = {
      ...{ name, url: url.trim(), triggers },
      webhookType: slack ? "WEBHOOK_TYPE_SLACK" : "WEBHOOK_TYPE_DEFAULT",
      mode: named || alerts ? "WEBHOOK_MODE_SPECIFIC" : "WEBHOOK_MODE_WORKSPACE",
      workspaceId: where === "" ? null : Number(where),
    };
    const made = await createWebhook(asked, once.current);
    props.onClose();
    props.onDone(made);
  };
  return (
    <FormDialog title="New webhook" yes="Create" blame={BLAME} onClose={props.onClose} onSubmit={submit}>
      {(at) => (
        <>
          <Field label="Name" hint="It cannot be changed later." problem={at("name")}>
            {(ids) => (
              <input
                {...ids}
                required
                autoComplete="off"
                className={FIELD}
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
          <Field label="Address" hint="Often a secret: others see only its host." problem={at("url")}>
            {(ids) => (
              <input
                {...ids}
                required
                type="url"
                autoComplete="off"
                placeholder="https://"
                className={FIELD}
                value={url}
                onChange={(event) => setUrl(event.target.value)}
              />
            )}
          </Field>
          <Field label="Messages">
            {(ids) => (
              <select
                {...ids}
                className={FIELD}
                value={slack ? "slack" : "json"}
                onChange={(event) => setSlack(event.target.value === "slack")}
              >
                <option value="json">Signed JSON</option>
                <option value="slack">Slack format</option>
              </select>
            )}
          </Field>
          <Field label="Workspace">
            {(ids) => (
              <select {...ids} className={FIELD} value={where} onChange={(event) => setWhere(event.target.value)}>
                {everywhere && <option value="">All workspaces</option>}
                {workspaces.map((each) => (
                  <option key={each.id} value={each.id}>
                    {each.name}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <ToldOf states={states} onStates={setStates} alerts={alerts} onAlerts={setAlerts} problem={at("told")} />
          <Field
            label="Lines of output matching"
            hint="An RE2 pattern; sent once per task. Leave empty for none."
            problem={at("pattern")}
          >
            {(ids) => (
              <input
                {...ids}
                autoComplete="off"
                className={`${FIELD} font-mono`}
                value={pattern}
                onChange={(event) => setPattern(event.target.value)}
              />
            )}
          </Field>
          {ofMachines && <MachineEvents chosen={machines} onChosen={setMachines} />}
          <label className={CHECKBOX}>
            <input
              type="checkbox"
              checked={named || alerts}
              disabled={alerts}
              onChange={(event) => setNamed(event.target.checked)}
            />
            Only for experiments that name it under integrations.webhooks
          </label>
        </>
      )}
    </FormDialog>
  );
}

function ToldOf(props: {
  states: readonly string[];
  onStates: (states: string[]) => void;
  alerts: boolean;
  onAlerts: (alerts: boolean) => void;
  problem?: string;
}) {
  const { states } = props;
  return (
    <fieldset className="flex min-w-0 flex-col gap-1">
      <legend className="pb-1 font-medium">Notify when an experiment becomes</legend>
      <div className="flex flex-wrap gap-x-4">
        {TOLD_STATES.map((state) => (
          <label key={state} className={CHECKBOX}>
            <input
              type="checkbox"
              aria-invalid={props.problem ? true : undefined}
              checked={states.includes(state)}
              onChange={(event) =>
                props.onStates(event.target.checked ? [...states, state] : states.filter((each) => each !== state))
              }
            />
            {wordOf(state)}
          </label>
        ))}
      </div>
      <label className={CHECKBOX}>
        <input type="checkbox" checked={props.alerts} onChange={(event) => props.onAlerts(event.target.checked)} />
        And of alerts that scripts send with core_context.alert()
      </label>
      {props.problem && (
        <p role="alert" className="break-words text-bad">
          {props.problem}
        </p>
      )}
    </fieldset>
  );
}

function MachineEvents(props: { chosen: readonly string[]; onChosen: (events: string[]) => void }) {
  const { chosen } = props;
  return (
    <fieldset className="flex min-w-0 flex-col gap-1">
      <legend className="pb-1 font-medium">Notify of rented machines</legend>
      <div className="flex flex-wrap gap-x-4">
        {Object.entries(TOLD_MACHINES).map(([event, word]) => (
          <label key={event} className={CHECKBOX}>
            <input
              type="checkbox"
              checked={chosen.includes(event)}
              onChange={({ target }) =>
                props.onChosen(target.checked ? [...chosen, event] : chosen.filter((each) => each !== event))
              }
            />
            {word.charAt(0).toUpperCase() + word.slice(1)}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
