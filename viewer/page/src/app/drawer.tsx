// The panel of the details: at the bottom, or beside the view in a window that is too low for both.
// Its size can be changed by pointer or keys.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

const SMALLEST = { height: 96, width: 280 } as const;
const LARGEST = 0.7; // share of the page
const STEP = 24; // px per key press

/** Returns the first sizes in a window: of low ones a third at most. */
export function firstSizes(width: number, height: number): { readonly height: number; readonly width: number } {
  return { height: Math.round(Math.min(264, height / 3)), width: Math.round(Math.min(460, width / 3)) };
}

interface DrawerProps {
  readonly isBeside: boolean;
  readonly children: ComponentChildren;
}

export function Drawer({ isBeside, children }: DrawerProps) {
  const [sizes, setSizes] = useState(() => firstSizes(innerWidth, innerHeight));
  const side = isBeside ? 'width' : 'height';
  const largest = Math.round((isBeside ? innerWidth : innerHeight) * LARGEST);
  const size = sizes[side];
  const set = (pixels: number): void => setSizes((old) => ({ ...old, [side]: Math.round(Math.min(largest, Math.max(SMALLEST[side], pixels))) }));
  const [more, less] = isBeside ? ['ArrowLeft', 'ArrowRight'] : ['ArrowUp', 'ArrowDown'];
  return (
    <aside class={isBeside ? 'drawer beside' : 'drawer'} aria-label="Details" style={{ [side]: `${size}px` }}>
      <div
        role="separator" aria-orientation={isBeside ? 'vertical' : 'horizontal'} aria-label={isBeside ? 'Width of the details' : 'Height of the details'} tabIndex={0}
        aria-valuenow={size} aria-valuemin={SMALLEST[side]} aria-valuemax={largest}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) set(isBeside ? innerWidth - event.clientX : innerHeight - event.clientY);
        }}
        onKeyDown={(event) => {
          if (event.key !== more && event.key !== less) return;
          event.preventDefault();
          event.stopPropagation();
          set(size + (event.key === more ? STEP : -STEP));
        }}
      />
      <div class="drawer-body">{children}</div>
    </aside>
  );
}
