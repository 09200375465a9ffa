// The colours of the style sheet as canvases need them. One place has them: styles.css.

export interface Theme {
  readonly bg: string;
  readonly fg: string;
  readonly muted: string;
  readonly line: string;
  readonly panel: string;
  readonly accent: string;
  readonly warn: string;
  readonly rest: string; // what is too small to be seen alone
  readonly font: string;
}

export function readTheme(element: Element): Theme {
  const style = getComputedStyle(element);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return {
    bg: of('--bg'),
    fg: of('--fg'),
    muted: of('--muted'),
    line: of('--line'),
    panel: of('--panel'),
    accent: of('--accent'),
    warn: of('--warn'),
    rest: of('--rest'),
    font: `11px ${style.fontFamily}`,
  };
}
