// Serves PyTorch's memory viewer (MemoryViz.js) from this machine: its CDN imports are mapped to
// the corresponding npm packages. Used by browser.mjs, which checks what it shows, and bench.mjs,
// which measures it.

import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

export const CHROMIUM = process.env.GMT_CHROMIUM ?? '/usr/bin/chromium';
export const CHROMIUM_FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];
export const modules = path.join(path.dirname(fileURLToPath(import.meta.url)), 'node_modules');

// The directory of the viewer: as configured, otherwise in the wheel, which contains it in some
// versions of torch.
function viewerFolder() {
  if (process.env.GMT_MEMORY_VIZ_JS) return path.dirname(process.env.GMT_MEMORY_VIZ_JS);
  try {
    const find = 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])';
    const torch = execFileSync(process.env.GMT_TORCH_PYTHON ?? 'python3', ['-c', find], {stdio: 'pipe'});
    return path.join(torch.toString().trim(), 'utils', 'viz');
  } catch {
    return '';
  }
}

export const viewer = viewerFolder();

// Returns why the viewer cannot be used here, or '' if it can.
export function whyNot() {
  if (!fs.existsSync(path.join(viewer, 'MemoryViz.js'))) {
    return 'no MemoryViz.js: run scripts/setup --test, or set GMT_MEMORY_VIZ_JS';
  }
  if (!fs.existsSync(CHROMIUM)) return `no ${CHROMIUM}`;
  return fs.existsSync(modules) ? '' : 'its npm packages are not installed: run scripts/setup --test';
}

// Maps the imports of the viewer and of d3's own modules to files served here. The viewer imports
// modules by the address of a CDN: .../NAME@MAJOR.
export function importMap() {
  const imports = {};
  const places = {};
  for (const name of fs.readdirSync(modules)) {
    const manifest = path.join(modules, name, 'package.json');
    if (!fs.existsSync(manifest)) continue;
    const {module, main} = JSON.parse(fs.readFileSync(manifest));
    imports[name] = places[name] = `/modules/${name}/${module ?? main}`;
  }
  const source = fs.readFileSync(path.join(viewer, 'MemoryViz.js'), 'utf8');
  for (const [, address] of source.matchAll(/from\s+["'](https:[^"']+)["']/g)) {
    const name = /\/([^/@]+)@\d+/.exec(address)?.[1];
    if (places[name]) imports[address] = places[name];
  }
  return {imports};
}

export function page(map, snapshot, view) {
  return `<!DOCTYPE html><html><head><script type="importmap">${JSON.stringify(map)}</script></head><body>
<script type="module">
import {add_local_files} from '/viewer/MemoryViz.js';
add_local_files([{name: 'exported', base64: ${JSON.stringify(snapshot)}}], ${JSON.stringify(view)});
window.loaded = true;
</script></body></html>`;
}

export function serve(pages) {
  const roots = {'/modules/': modules, '/viewer/': viewer};
  const server = http.createServer((request, response) => {
    const url = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    if (url in pages) return response.setHeader('content-type', 'text/html').end(pages[url]);
    for (const [prefix, root] of Object.entries(roots)) {
      const file = path.join(root, url.slice(prefix.length));
      if (!url.startsWith(prefix) || !file.startsWith(root)) continue;
      // Older modules of d3 import each other without the extension.
      const found = [file, `${file}.js`].find((f) => fs.existsSync(f) && fs.statSync(f).isFile());
      if (found) return response.setHeader('content-type', 'text/javascript').end(fs.readFileSync(found));
    }
    response.writeHead(url === '/favicon.ico' ? 204 : 404).end();
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}
