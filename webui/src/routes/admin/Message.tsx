/** The message to everyone: what it says, from when, until when. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { outcome } from "../../actions/perform";
import { useEdit } from "../../editing/useEdit";
import { absolute } from "../../format";
import { useLive } from "../../services/live";
import { type ClusterMessage, clearMessage, messageQuery, setMessage } from "../../services/message";
import { Button, FIELD } from "../../ui/Button";
import type { Blame } from "../../ui/blame";
import { Field } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Loading, Problem } from "../../ui/notices";
import { say } from "../../ui/overlays";
import { Section } from "../../ui/Page";
import { fromField, toField } from "./moments";

const BLAME: Blame = { from: /startTime/, until: /endTime|end before/, text: /message has/ };

export default function MessagePart(_: { may: boolean }) {
  const shown = useLive(messageQuery);
  if (shown.data === undefined)
    return shown.error ? (
      <Problem error={shown.error} retry={() => void shown.refetch()} />
    ) : (
      <Loading what="the message" />
    );
  return (
    <>
      <Present message={shown.data} />
      <Write message={shown.data} />
    </>
  );
}

function useRefresh() {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: ["cluster-message"] });
}

function Present({ message }: { message: ClusterMessage | null }) {
  const refresh = useRefresh();
  const clear = async () => {
    const done = await outcome(
      clearMessage().then(() => true),
      "Remove the message",
    );
    const again = () =>
      void outcome(
        setMessage(message?.message ?? "", null, message?.startTime, message?.endTime ?? undefined).then(refresh),
        "Set the message again",
      );
    if (done) say({ text: "Removed the message", undo: again });
    await refresh();
  };
  if (!message)
    return <p className="text-dim">No message is set. A message set here appears above every page and at the login.</p>;
  return (
    <div className="flex flex-wrap items-center gap-3">
      <p>
        Shown to everyone from {absolute(message.startTime)}{" "}
        {message.endTime ? `until ${absolute(message.endTime)}` : "until it is removed"}.
      </p>
      <Button onClick={() => void clear()}>Remove it</Button>
    </div>
  );
}

const LABELS = { text: "Text", until: "Until" };

function valuesOf(message: ClusterMessage | null) {
  return { text: message?.message ?? "", until: toField(message?.endTime) };
}

function Write({ message }: { message: ClusterMessage | null }) {
  const client = useQueryClient();
  const refresh = useRefresh();
  const read = () => client.fetchQuery({ ...messageQuery, staleTime: 0 });
  const edit = useEdit({ of: message, valuesOf, read, labels: LABELS });
  const { text, until } = edit.values;
  const [from, setFrom] = useState("");
  // Nothing is typed: what somebody else sets, or takes back, is shown.
  const untouched = edit.changed.length === 0 && from === "";
  if (untouched && message?.createdTime !== edit.of?.createdTime) edit.begin(message);
  const save = async () => {
    const set = async (of: ClusterMessage | null, values: { text: string; until: string }) => {
      await setMessage(values.text, of, fromField(from), fromField(values.until));
      say({ text: "Set the message" });
      edit.begin(await read());
      setFrom("");
      await refresh();
    };
    if (edit.changed.length === 0) await set(edit.of, edit.values);
    else await edit.save(({ of, values }) => set(of, values));
  };
  return (
    <Section title={message ? "Replace it" : "A message to everyone"}>
      <Form label="Message" blame={BLAME} onSubmit={save} className="flex min-w-0 max-w-xl flex-col gap-3">
        {(at, busy, problem) => (
          <>
            {edit.overtaken}
            <Field label="Text" problem={at("text")}>
              {(ids) => (
                <textarea
                  {...ids}
                  required
                  rows={3}
                  className={FIELD}
                  value={text}
                  onChange={(event) => edit.set({ text: event.target.value })}
                />
              )}
            </Field>
            <When label="From" hint="Leave empty to start now." value={from} onChange={setFrom} problem={at("from")} />
            <When
              label="Until"
              hint="Leave empty to keep it until it is removed. Times are those of this browser."
              value={until}
              onChange={(until) => edit.set({ until })}
              problem={at("until")}
            />
            {problem}
            <Button type="submit" look="primary" className="self-start" disabled={busy || text.trim() === ""}>
              Set message
            </Button>
          </>
        )}
      </Form>
    </Section>
  );
}

function When(props: {
  label: string;
  hint: string;
  value: string;
  onChange: (value: string) => void;
  problem?: string;
}) {
  return (
    <Field label={props.label} hint={props.hint} problem={props.problem}>
      {(ids) => (
        <input
          {...ids}
          type="datetime-local"
          className={`${FIELD} self-start`}
          value={props.value}
          onChange={(event) => props.onChange(event.target.value)}
        />
      )}
    </Field>
  );
}
