// The keys that move the window of the timelines move that of the lanes while these are shown.

import type { Command } from '../../state/commands';

const ZOOM = 0.7;
const PAN = 0.15;

export interface LanesWindow {
  readonly zoom: (factor: number) => void;
  readonly pan: (share: number) => void;
  readonly fit: () => void;
  readonly align: () => void; // the next alignment
}

export function lanesCommands({ zoom, pan, fit, align }: LanesWindow): Command[] {
  const group = 'Window';
  return [
    { id: 'window.zoom_in', title: 'Zoom in', group, hotkeys: ['W', '+', 'ArrowUp'], run: () => zoom(ZOOM) },
    { id: 'window.zoom_out', title: 'Zoom out', group, hotkeys: ['S', '-', 'ArrowDown'], run: () => zoom(1 / ZOOM) },
    { id: 'window.left', title: 'Go to earlier', group, hotkeys: ['A', 'ArrowLeft'], run: () => pan(-PAN) },
    { id: 'window.right', title: 'Go to later', group, hotkeys: ['D', 'ArrowRight'], run: () => pan(PAN) },
    { id: 'window.first', title: 'Go to the beginning', group, hotkeys: ['Home'], run: () => pan(-1e9) },
    { id: 'window.last', title: 'Go to the end', group, hotkeys: ['End'], run: () => pan(1e9) },
    { id: 'window.fit', title: 'Show all of the lanes', group, hotkeys: ['0'], run: fit },
    { id: 'window.axis', title: 'Next alignment of the lanes: clock, beginnings, steps', group, hotkeys: ['X'], run: align },
  ];
}
