// Seeds of random tests, as in tests/seeds/seeds.h for C++: those that a test lists, and new ones
// on request. GMT_TEST_SEED=N runs seed N only. GMT_TEST_SECONDS=S adds new seeds for S seconds in
// each test.

const only = process.env['GMT_TEST_SEED'];
const seconds = Number(process.env['GMT_TEST_SECONDS'] ?? 0);

const newSeed = (): number => Math.floor(Math.random() * 2 ** 31);

/** Returns 1 to `count` and `failed`, the seeds that have found a defect. */
export function seedsUpTo(count: number, failed: readonly number[] = []): number[] {
  return [...Array.from({ length: count }, (_, i) => i + 1), ...failed];
}

/** Runs `body` for each seed. The first seed that fails ends the loop and is named in the error. */
export function forEachSeed(listed: readonly number[], body: (seed: number) => void): void {
  const run = (seed: number): void => {
    try {
      body(seed);
    } catch (error) {
      throw new Error(`seed ${seed}: repeat with GMT_TEST_SEED=${seed}\n${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  };
  if (only !== undefined) {
    run(Number(only));
    return;
  }
  listed.forEach(run);
  for (const end = performance.now() + seconds * 1000; performance.now() < end;) run(newSeed());
}

/**
 * For suites that take about a minute per seed and whose names contain it: adds one new seed to the
 * listed ones.
 */
export function seedsOfSuite(listed: readonly number[]): number[] {
  if (only !== undefined) return [Number(only)];
  return seconds > 0 ? [...listed, newSeed()] : [...listed];
}
