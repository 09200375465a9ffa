import { defineConfig } from 'vitest/config';

// Guards against hanging, not checks of speed.
const HANG_MS = 120_000 + Number(process.env['GMT_TEST_SECONDS'] ?? 0) * 1000;

// One process for all files: a process for each would take three times as long.
export default defineConfig({
  test: { include: ['src/**/*_test.ts', 'src/**/*_test.tsx'], isolate: false, testTimeout: HANG_MS, hookTimeout: HANG_MS },
});
