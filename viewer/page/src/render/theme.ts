// The colours of the style sheet in the form that canvases need. They are defined only in
// styles.css.

import { luminance, type Scheme } from './palette';

export interface Theme {
  readonly scheme: Scheme;
  readonly bg: string;
  readonly fg: string;
  readonly muted: string;
  readonly line: string;
  readonly panel: string;
  readonly accent: string;
  readonly warn: string;
  readonly rest: string; // memory that is too small to be drawn individually
  readonly font: string;
}

/** Reads the computed colours from the browser. Callers keep them until the theme changes. */
export function readTheme(element: Element): Theme {
  const probe = document.createElement('span');
  element.append(probe);
  const of = (name: string): string => {
    probe.style.color = `var(${name})`;
    return hexOf(getComputedStyle(probe).color);
  };
  const bg = of('--bg');
  const theme = {
    scheme: luminance(bg) > 0.18 ? ('light' as const) : ('dark' as const),
    bg,
    fg: of('--fg'),
    muted: of('--muted'),
    line: of('--line'),
    panel: of('--panel'),
    accent: of('--accent'),
    warn: of('--warn'),
    rest: of('--rest'),
    font: `11px ${getComputedStyle(element).fontFamily}`,
  };
  probe.remove();
  return theme;
}

/** Converts 'rgb(1, 2, 3)' to '#010203'. */
export function hexOf(color: string): string {
  const channels = color.match(/[\d.]+/g)?.slice(0, 3) ?? ['0', '0', '0'];
  return `#${channels.map((channel) => Math.round(Number(channel)).toString(16).padStart(2, '0')).join('')}`;
}
