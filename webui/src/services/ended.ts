/** Whether a refusal says that a session is over. */

/** Known, and deactivated: all that the master answers to them begins so. */
const INACTIVE = "user is not active";

/** Nobody knows it (any more), or its user was deactivated. */
export function sessionEnded(status: number, reason: string): boolean {
  return status === 401 || (status === 403 && reason.startsWith(INACTIVE));
}
