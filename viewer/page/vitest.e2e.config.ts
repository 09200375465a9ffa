import { defineConfig } from 'vitest/config';

// Tests of the built page in a real browser, one at a time. A single wait of a test times out
// earlier than the test (HANG_MS in e2e/live.ts and e2e/page.ts), so that the test can report what
// it waited for.
const TEST_MS = 300_000;

export default defineConfig({
  test: { include: ['e2e/**/*_test.ts'], globalSetup: 'e2e/global_setup.ts', fileParallelism: false, testTimeout: TEST_MS, hookTimeout: TEST_MS },
});
