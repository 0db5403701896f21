/** Files of the browser as the master takes them. */

import type { CodeFile } from "../../services/submissions";

/** What no task needs; the command line leaves out the same. */
const NEVER =
  /(^|\/)(__pycache__|\.git|\.hg|\.svn|\.terraform|terraform_data|\.idea|\.vscode|\.ipynb_checkpoints|\.mypy_cache|\.pytest_cache|\.ruff_cache)\/|(^|\/)(\.DS_Store|terraform\.tfstate[^/]*|[^/]*\.py[cod]|[^/]*\$py\.class)$/;
export const LIMIT_BYTES = 95 * 1024 * 1024;

/** Of a folder that was chosen; raises an error where they are too large. */
export async function folderOf(list: FileList): Promise<{ name: string; files: CodeFile[] }> {
  const chosen = [...list].map((file) => {
    const [root = "", ...rest] = (file.webkitRelativePath || file.name).split("/");
    return { file, root, path: rest.join("/") || root };
  });
  const kept = chosen.filter(({ path }) => !NEVER.test(path));
  const size = kept.reduce((sum, { file }) => sum + file.size, 0);
  if (size > LIMIT_BYTES) {
    const largest = kept.reduce((a, b) => (b.file.size > a.file.size ? b : a));
    throw new Error(
      `The folder has ${Math.ceil(size / 2 ** 20)} MiB, and at most ${LIMIT_BYTES / 2 ** 20} are taken: keep data in ` +
        `shared storage. Its largest file is ${largest.path}.`,
    );
  }
  const files: CodeFile[] = [];
  for (const { file, path } of kept) {
    files.push(entry(path, await base64(file), file.lastModified));
  }
  return { name: chosen[0]?.root ?? "", files };
}

/** The script that a configuration runs, as far as its words say; a path from / is not of the code. */
export function scriptRunBy(config: string): string | undefined {
  const line = /^entrypoint:(.*(?:\n[ -].*)*)/m.exec(config)?.[1] ?? "";
  return /(?:^|[\s"'[,])((?!\/)[\w./-]+\.(?:py|sh))(?=$|[\s"'\],])/.exec(line)?.[1];
}

/** One script, as of a moment in milliseconds. */
export async function scriptOf(name: string, text: string, at: number): Promise<CodeFile[]> {
  return [entry(name, await base64(new Blob([text])), at)];
}

function entry(path: string, content: string, at: number): CodeFile {
  return { path, type: 48, content, mode: 0o644, mtime: Math.floor(at / 1000), uid: 0, gid: 0 };
}

function base64(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,?/, ""));
    reader.onerror = () => reject(reader.error ?? new Error("a file could not be read"));
    reader.readAsDataURL(blob);
  });
}
