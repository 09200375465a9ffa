// Stands in for the views while a recording is read: shows the progress, and what was held in the
// part that has been read.

import { formatBytes } from '../base/format_bytes';
import type { FileProgress, SoFar } from '../data/protocol';
import { sparklinePath } from '../widgets/sparkline';

const WIDTH = 1000;
const HEIGHT = 100;

export function LoadingPage({ progress }: { readonly progress: FileProgress | null }) {
  const what = progress?.what ?? '';
  return (
    <main id="main" tabIndex={-1} class="loading-page">
      <p role="status">{what === '' ? 'Opening the recording…' : what}</p>
      <progress max={1} aria-label="Opening the recording" {...(progress === null ? {} : { value: progress.fraction })} />
      {progress?.so_far !== undefined && progress.so_far.lanes.length > 0 && <Curves soFar={progress.so_far} />}
    </main>
  );
}

// The curves cover the share of the width that has been read, so that they grow to the right.
function Curves({ soFar }: { readonly soFar: SoFar }) {
  const width = soFar.share > 0 ? WIDTH * soFar.share : WIDTH;
  return (
    <ul class="so-far" aria-label="Memory in the part read so far">
      {soFar.lanes.map(({ label, bytes, most }) => {
        const top = most.reduce((highest, value) => Math.max(highest, value), 0);
        return (
          <li key={label}>
            <span>{label}</span> <span class="muted">{`${formatBytes(bytes)}, peak ${formatBytes(top)} so far`}</span>
            <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
              <path d={sparklinePath(most, top, width, HEIGHT)} />
            </svg>
          </li>
        );
      })}
    </ul>
  );
}
