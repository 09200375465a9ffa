import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

// The page is one file, whichever door it comes through: the server sends it, a mailed file is it.
export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: { target: 'es2022', outDir: process.env['GMT_PAGE_OUT'] ?? 'dist', emptyOutDir: true, reportCompressedSize: false },
});
