/** What a line of output may be, from the least to what is worst. */
export const LEVELS = ["trace", "debug", "info", "warning", "error", "critical"];
