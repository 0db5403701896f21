/** Of how many of the best trials curves may be drawn. */
export const BEST_CURVES: readonly number[] = [10, 25, 50, 100];
