// The seeds of random tests, as tests/seeds/seeds.h has them for C++: those that a test lists, and new ones on request.
// GMT_TEST_SEED=N runs seed N only; GMT_TEST_SECONDS=S goes on with new ones for S seconds in each test.

const only = process.env['GMT_TEST_SEED'];
const seconds = Number(process.env['GMT_TEST_SECONDS'] ?? 0);

const newSeed = (): number => Math.floor(Math.random() * 2 ** 31);

/** 1 to `count`, and `failed`: seeds that have found something. */
export function seedsUpTo(count: number, failed: readonly number[] = []): number[] {
  return [...Array.from({ length: count }, (_, i) => i + 1), ...failed];
}

/** The first seed that fails ends the loop and stands in the error. */
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

/** For suites that take about a minute for each seed, and whose names say it: a new one besides those that are listed. */
export function seedsOfSuite(listed: readonly number[]): number[] {
  if (only !== undefined) return [Number(only)];
  return seconds > 0 ? [...listed, newSeed()] : [...listed];
}
