// A panel at the right whose width can be changed by pointer or keys.

import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';

const NARROWEST = 280;
const WIDEST = 0.7; // of the page
const AT_FIRST = 0.5;

interface SidePanelProps {
  readonly label: string;
  readonly children: ComponentChildren;
}

export function SidePanel({ label, children }: SidePanelProps) {
  const [width, setWidth] = useState(Math.min(760, Math.round(innerWidth * AT_FIRST)));
  const panel = useRef<HTMLElement>(null);
  const set = (pixels: number): void => setWidth(Math.round(Math.min(innerWidth * WIDEST, Math.max(NARROWEST, pixels))));
  return (
    <aside class="side-panel" aria-label={label} ref={panel} style={{ width: `${width}px` }}>
      <div
        role="separator" aria-orientation="vertical" aria-label={`Width of the ${label.toLowerCase()}`} tabIndex={0}
        aria-valuenow={width} aria-valuemin={NARROWEST} aria-valuemax={Math.round(innerWidth * WIDEST)}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) set(panel.current!.getBoundingClientRect().right - event.clientX);
        }}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
          event.preventDefault();
          event.stopPropagation();
          set(width + (event.key === 'ArrowLeft' ? 24 : -24));
        }}
      />
      {children}
    </aside>
  );
}
