/** Creates an experiment: code, configuration, what the master makes of them, and off it goes. */

import { keepPreviousData, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { Suspense, useEffect, useRef, useState } from "react";
import { configOf } from "../actions/experiments";
import { lazy } from "../parts";
import { experimentQuery } from "../services/experiments";
import { useLive } from "../services/live";
import { Once } from "../services/once";
import { projectsQuery } from "../services/projects";
import { meQuery } from "../services/session";
import { check, configSchemaQuery, type Submission, submit } from "../services/submissions";
import { templatesQuery } from "../services/templates";
import { Button, FIELD } from "../ui/Button";
import type { EditorHandle } from "../ui/Editor";
import { Field } from "../ui/Field";
import { Loading, Problem, Refusal } from "../ui/notices";
import { say } from "../ui/overlays";
import { Page, Section } from "../ui/Page";
import { visible } from "../visible";
import { Ahead } from "./create/Ahead";
import { Code } from "./create/Code";
import { completionsAt, type Schema } from "./create/completion";
import { type Draft, draftKey, dropDraft, keepDraft, keptDraft } from "./create/draft";
import { scriptOf, scriptRunBy } from "./create/files";
import { problemsOf } from "./create/problems";

const Editor = lazy(() => import("../ui/Editor"));
const route = getRouteApi("/shell/experiments/new");
const AFTER_MS = 400;
const UNCATEGORIZED = 1;
const BEGINNING = `name: my experiment
entrypoint: python3 train.py
hyperparameters:
  lr: {type: log, base: 10, minval: -4, maxval: -1}
searcher:
  name: random
  metric: loss
  smaller_is_better: true
  max_trials: 4
resources:
  slots_per_trial: 1
`;

export function CreatePage() {
  const { fork, project } = route.useSearch();
  const me = useSuspenseQuery(meQuery).data;
  const key = draftKey(me.id, fork);
  const source = useLive({ ...experimentQuery(fork ?? 0), enabled: fork !== undefined }, () => true);
  const title = fork === undefined ? "New experiment" : `Fork of experiment ${fork}`;
  const kept = keptDraft(key);
  if (fork !== undefined && !kept && (!source.data || source.data.experiment.id !== fork)) {
    return (
      <Page title={title} name={title}>
        {source.error ? (
          <Problem error={source.error} retry={() => void source.refetch()} />
        ) : (
          <Loading what="the experiment" />
        )}
      </Page>
    );
  }
  const forked = fork === undefined ? undefined : source.data?.experiment;
  const beginning: Draft = {
    config: forked ? configOf(forked) : BEGINNING,
    script: "",
    scriptName: "train.py",
    projectId: project ?? forked?.projectId ?? UNCATEGORIZED,
    template: "",
  };
  return (
    <Form key={key} draftKey={key} first={kept ?? beginning} kept={kept !== undefined} fork={fork} title={title} />
  );
}

/** A draft that is kept while it changes. */
function useDraft(key: string, first: Draft) {
  const [draft, setDraft] = useState(first);
  const change = (changed: Partial<Draft>) =>
    setDraft((former) => {
      const next = { ...former, ...changed };
      keepDraft(key, next);
      return next;
    });
  return [draft, change] as const;
}

function useLate<T>(value: T): T {
  const [late, setLate] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLate(value), AFTER_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return late;
}

/** What the master makes of a draft, a moment after the last key. */
function useCheck(draft: Draft, fork: number | undefined) {
  const submission: Submission = {
    config: useLate(draft.config),
    projectId: draft.projectId,
    template: draft.template,
    parentId: fork,
  };
  const checked = useQuery({
    queryKey: ["submission", submission],
    queryFn: ({ signal }) => check(submission, signal),
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 30_000,
    gcTime: 30_000,
  });
  return { ...checked, isOld: submission.config !== draft.config || checked.isPlaceholderData };
}

const NO_PROBLEMS: { line?: number; message: string }[] = [];

function Form(props: { draftKey: string; first: Draft; kept: boolean; fork?: number; title: string }) {
  const { fork, title } = props;
  const navigate = useNavigate();
  const [draft, change] = useDraft(props.draftKey, props.first);
  const checked = useCheck(draft, fork);
  const editor = useRef<EditorHandle>(null);
  const schema = useQuery(configSchemaQuery).data as Schema | undefined;
  const once = useRef(new Once());
  /** What is sent again is the same: the moment of a pasted script, too. */
  const begun = useRef(Date.now());
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  /** The script that it was said of that it is not sent. */
  const warned = useRef<string>(undefined);
  const refused = checked.error?.message ?? "";
  const [shown, setShown] = useState(NO_PROBLEMS);
  useEffect(() => setShown(refused ? problemsOf(refused) : NO_PROBLEMS), [refused]);

  async function send() {
    const script = fork === undefined && !draft.folder && !draft.script ? scriptRunBy(draft.config) : undefined;
    if (script && warned.current !== script) {
      warned.current = script;
      setRefusal(
        `The configuration runs ${script}, but no code is sent: choose its folder or paste it. ` +
          "If it is where the task runs, such as in its image, press Submit again.",
      );
      return;
    }
    setBusy(true);
    setRefusal("");
    try {
      const code = draft.folder
        ? draft.folder.files
        : draft.script
          ? await scriptOf(draft.scriptName || "train.py", draft.script, begun.current)
          : undefined;
      const { config, projectId, template } = draft;
      const sent = await submit({ config, projectId, template, parentId: fork, code }, once.current);
      dropDraft(props.draftKey);
      say({ text: [`Submitted experiment ${sent.experiment.id}`, ...(sent.notices ?? [])].join(". ") });
      await navigate({ to: "/experiments/$experimentId", params: { experimentId: sent.experiment.id } });
    } catch (error) {
      setRefusal(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  }

  function discard() {
    dropDraft(props.draftKey);
    void navigate({ to: "/experiments" });
  }

  return (
    <Page
      title={title}
      name={title}
      stays
      aside={
        <>
          <Button look="primary" disabled={busy} onClick={() => void send()}>
            Submit
          </Button>
          <Button onClick={discard}>Discard</Button>
          {props.kept && <p className="text-dim">This is your unsaved draft.</p>}
        </>
      }
    >
      {refusal && (
        <Refusal className="mt-4 scroll-mt-28 whitespace-pre-wrap rounded-md border border-bad p-3">{refusal}</Refusal>
      )}
      <div className="grid min-w-0 gap-4 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <div className="flex min-w-0 flex-col gap-4">
          <Section title="Configuration">
            <Suspense fallback={<Loading what="the editor" />}>
              <Editor
                label="Configuration"
                text={draft.config}
                onChange={(config) => change({ config })}
                problems={shown}
                complete={(text, cursor) => schema && completionsAt(schema, text, cursor)}
                handle={editor}
              />
            </Suspense>
          </Section>
          <Code draft={draft} change={change} fork={fork} />
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          <Places draft={draft} change={change} />
          <Ahead checked={checked} problems={shown} goTo={(line) => editor.current?.goTo(line)} />
        </div>
      </div>
    </Page>
  );
}

function Places({ draft, change }: { draft: Draft; change: (changed: Partial<Draft>) => void }) {
  const projects = useQuery(projectsQuery).data ?? [];
  const templates = useLive(templatesQuery()).data?.rows ?? [];
  return (
    <Section title="Where it goes">
      <Field label="Project">
        {(ids) => (
          <select
            {...ids}
            className={FIELD}
            value={draft.projectId}
            onChange={(event) => change({ projectId: Number(event.target.value) })}
          >
            {!projects.some((each) => each.id === draft.projectId) && (
              <option value={draft.projectId}>Project {draft.projectId}</option>
            )}
            {projects.map((each) => (
              <option key={each.id} value={each.id}>
                {visible(each.workspaceName ?? "")} / {visible(each.name)}
              </option>
            ))}
          </select>
        )}
      </Field>
      {templates.length > 0 && (
        <Field label="Template" hint="It supplies what the configuration does not set.">
          {(ids) => (
            <select
              {...ids}
              className={FIELD}
              value={draft.template}
              onChange={(event) => change({ template: event.target.value })}
            >
              <option value="">None</option>
              {templates.map((each) => (
                <option key={each.name} value={each.name}>
                  {visible(each.name)}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
    </Section>
  );
}
