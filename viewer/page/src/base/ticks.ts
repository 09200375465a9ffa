// Places the ticks of an axis: round numbers, about `target` of them.

/** Returns multiples of a power of two of bytes: 0, 256 MiB, 512 MiB, ... */
export function byteTicks(low: number, high: number, target: number): number[] {
  return multiples(low, high, 2 ** Math.max(0, Math.ceil(Math.log2((high - low) / Math.max(1, target)))));
}

/** Returns multiples of 1, 2 or 5 times a power of ten; the step is never below `smallest`. */
export function decimalTicks(low: number, high: number, target: number, smallest = 0): number[] {
  return multiples(low, high, Math.max(smallest, decimalStep((high - low) / Math.max(1, target))));
}

/**
 * Returns round times: decimal steps below 10 seconds, then 10, 15, 30 seconds, 1, 2, 5 minutes and
 * so on.
 */
export function timeTicks(low: number, high: number, target: number): number[] {
  const wanted = (high - low) / Math.max(1, target);
  if (wanted <= 5e9) return multiples(low, high, decimalStep(wanted));
  const round = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].map((s) => s * 1e9);
  return multiples(low, high, round.find((step) => step >= wanted) ?? decimalStep(wanted / 86400e9) * 86400e9);
}

function decimalStep(wanted: number): number {
  const power = 10 ** Math.floor(Math.log10(wanted));
  return (([1, 2, 5] as const).find((factor) => factor * power >= wanted) ?? 10) * power;
}

function multiples(low: number, high: number, step: number): number[] {
  if (!(high > low) || !(step > 0) || !Number.isFinite(step)) return [];
  const result: number[] = [];
  // Multiplied, not summed, so that no rounding error accumulates.
  for (let i = Math.ceil(low / step); i * step <= high && result.length < 1000; ++i) result.push(i * step);
  return result;
}
