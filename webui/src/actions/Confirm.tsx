/** A question before what cannot be taken back; it comes once it is asked. */

import { lazy } from "../parts";

export const Confirm = lazy(() => import("./ConfirmDialog"));
