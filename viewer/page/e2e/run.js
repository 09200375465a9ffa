// node e2e/run.js FILE.ts ARGUMENT...: runs a TypeScript program of this folder with only the
// packages that build the page.

import path from 'node:path';
import { runnerImport } from 'vite';

const [file, ...rest] = process.argv.slice(2);
if (file === undefined) throw new Error('usage: run.js FILE.ts ARGUMENT...');
process.argv.splice(1, Infinity, path.resolve(file), ...rest);
await runnerImport(path.resolve(file), { root: path.join(import.meta.dirname, '..'), logLevel: 'warn' });
