/** Kinds of checkpoint storage, and what of each is asked for. Pure. */

export interface StorageField {
  key: string;
  label: string;
  required?: boolean;
  /** The master never says it again: whoever changes anything types it again. */
  secret?: boolean;
}

export const STORAGES: Record<string, { word: string; fields: StorageField[] }> = {
  shared_fs: {
    word: "A shared file system",
    fields: [
      { key: "host_path", label: "Directory on each agent", required: true },
      { key: "storage_path", label: "Below it" },
      { key: "container_path", label: "Where containers see it" },
    ],
  },
  directory: {
    word: "A directory inside of tasks",
    fields: [{ key: "container_path", label: "Directory", required: true }],
  },
  s3: {
    word: "S3",
    fields: [
      { key: "bucket", label: "Bucket", required: true },
      { key: "prefix", label: "Prefix" },
      { key: "endpoint_url", label: "Address of the service" },
      { key: "access_key", label: "Access key", secret: true },
      { key: "secret_key", label: "Secret key", secret: true },
    ],
  },
  gcs: {
    word: "Google Cloud Storage",
    fields: [
      { key: "bucket", label: "Bucket", required: true },
      { key: "prefix", label: "Prefix" },
    ],
  },
  azure: {
    word: "Azure Blob Storage",
    fields: [
      { key: "container", label: "Container", required: true },
      { key: "account_url", label: "Address of the account" },
      { key: "credential", label: "Credential", secret: true },
      { key: "connection_string", label: "Connection string, instead of both", secret: true },
    ],
  },
};

/** How many checkpoints garbage collection keeps. */
export const KEPT: StorageField[] = [
  { key: "save_experiment_best", label: "Best of an experiment" },
  { key: "save_trial_best", label: "Best of a trial" },
  { key: "save_trial_latest", label: "Latest of a trial" },
];

export type Written = Record<string, string>;

/** As it is edited: texts, and no secrets. */
export function writtenOf(stored: Record<string, unknown> | null | undefined): Written {
  const written: Written = { type: "" };
  const secrets = new Set(
    Object.values(STORAGES).flatMap(({ fields }) => fields.filter((each) => each.secret).map((each) => each.key)),
  );
  for (const [key, value] of Object.entries(stored ?? {})) {
    if (value !== null && value !== undefined && !secrets.has(key)) written[key] = String(value);
  }
  return written;
}

/** As the master takes it; `{}`: none of its own. */
export function storageOf(written: Written): Record<string, string | number> {
  const kind = STORAGES[written.type ?? ""];
  if (!kind) return {};
  const made: Record<string, string | number> = { type: written.type ?? "" };
  for (const { key } of kind.fields) if (written[key]) made[key] = written[key];
  for (const { key } of KEPT) if (written[key]) made[key] = Number(written[key]);
  return made;
}
