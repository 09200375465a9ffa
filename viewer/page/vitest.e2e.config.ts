import { defineConfig } from 'vitest/config';

// In a real browser, on the built page: one at a time.
export default defineConfig({
  test: { include: ['e2e/**/*_test.ts'], globalSetup: 'e2e/global_setup.ts', fileParallelism: false, testTimeout: 120_000, hookTimeout: 120_000 },
});
