// A panel at the bottom whose height can be changed by pointer or keys.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

const LOWEST = 96;
const HIGHEST = 0.7; // of the page

export function Drawer({ children }: { readonly children: ComponentChildren }) {
  const [height, setHeight] = useState(264);
  const set = (pixels: number): void => setHeight(Math.round(Math.min(innerHeight * HIGHEST, Math.max(LOWEST, pixels))));
  return (
    <aside class="drawer" aria-label="Details" style={{ height: `${height}px` }}>
      <div
        role="separator" aria-orientation="horizontal" aria-label="Height of the details" tabIndex={0}
        aria-valuenow={height} aria-valuemin={LOWEST} aria-valuemax={Math.round(innerHeight * HIGHEST)}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) set(innerHeight - event.clientY);
        }}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return;
          event.preventDefault();
          set(height + (event.key === 'ArrowUp' ? 24 : -24));
        }}
      />
      <div class="drawer-body">{children}</div>
    </aside>
  );
}
