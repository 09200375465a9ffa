import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

// Adds the licences of bundled packages to the page, because minifiers remove licence comments.
function licences(...packages: readonly string[]): Plugin {
  const texts = packages.map((name) => `${name}\n\n${readFileSync(new URL(`node_modules/${name}/LICENSE`, import.meta.url), 'utf8').trim()}`);
  const comment = `<!--\nThis page contains:\n\n${texts.join('\n\n').replaceAll('--', '- -')}\n-->`;
  return { name: 'licences', transformIndexHtml: (html) => html.replace(/^<!doctype html>/i, (doctype) => `${doctype}\n${comment}`) };
}

// Adds the data of two recordings, as in a standalone file, so that development and browser tests need
// no gpumemtrace program.
function recordings(): Plugin {
  const data = readFileSync(new URL('src/testing/recordings.html', import.meta.url), 'utf8');
  return { name: 'recordings', transformIndexHtml: (html) => html.replace('<body>', (body) => `${body}\n${data}`) };
}

// Adds a policy under which only the page's own scripts and styles are used, and workers that they create, whatever a recording
// contains (viewer/html/content_policy.h). Must follow the plugin that puts them into the page.
function contentPolicy(): Plugin {
  const hashes = (html: string, element: string) =>
    [...html.matchAll(new RegExp(`<${element}\\b[^>]*>([^]*?)</${element}`, 'gi'))]
      .map(([, text]) => `'sha256-${createHash('sha256').update(text ?? '').digest('base64')}'`)
      .join(' ');
  const policy = (html: string) =>
    `default-src 'none'; script-src ${hashes(html, 'script')}; style-src ${hashes(html, 'style')}; worker-src blob:; ` +
    "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'";
  const withPolicy = (html: string) =>
    html.replace('<head>', (head) => `${head}\n    <meta http-equiv="Content-Security-Policy" content="${policy(html)}">`);
  return {
    name: 'content-policy',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler: (_, bundle) => {
        for (const file of Object.values(bundle)) {
          if (file.type === 'asset' && file.fileName.endsWith('.html')) file.source = withPolicy(String(file.source));
        }
      },
    },
  };
}

// The page is one file for both transports: the server sends it, and a standalone file is it.
export default defineConfig(({ command, mode }) => ({
  plugins: [licences('preact'), viteSingleFile({ removeViteModuleLoader: true }), contentPolicy(), ...(command === 'serve' || mode === 'recorded' ? [recordings()] : [])],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: { target: 'es2022', outDir: process.env['GMT_PAGE_OUT'] ?? 'dist', emptyOutDir: true, reportCompressedSize: false },
}));
