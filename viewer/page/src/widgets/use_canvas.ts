// A canvas with the size of its element in device pixels. It is drawn at most once per animation
// frame, and only when its content has changed.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { RefObject } from 'preact';
import { activity } from '../base/activity';
import { readTheme, type Theme } from '../render/theme';

export interface CanvasSize {
  readonly width: number; // CSS px
  readonly height: number;
}

export interface CanvasHandle {
  readonly canvas: RefObject<HTMLCanvasElement | null>;
  readonly size: CanvasSize;
}

/** `draw` draws in CSS px. `parts` are the values that it depends on. */
export function useCanvas(draw: (context: CanvasRenderingContext2D, size: CanvasSize, theme: Theme) => void, parts: readonly unknown[]): CanvasHandle {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState<CanvasSize>({ width: 0, height: 0 });
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() =>
      setSize((old) =>
        old.width === element.clientWidth && old.height === element.clientHeight
          ? old
          : { width: element.clientWidth, height: element.clientHeight },
      ),
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const changes = useThemeChanges();
  const theme = useMemo<{ read?: Theme }>(() => ({}), [changes]);
  useEffect(() => {
    const done = activity.begin();
    const frame = requestAnimationFrame(() => {
      done();
      const element = canvas.current;
      const context = element?.getContext('2d') ?? null;
      if (element === null || context === null || size.width === 0) return;
      const scale = window.devicePixelRatio;
      element.width = Math.round(size.width * scale);
      element.height = Math.round(size.height * scale);
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, size.width, size.height);
      draw(context, size, (theme.read ??= readTheme(element)));
    });
    return () => {
      cancelAnimationFrame(frame);
      done();
    };
  }, [size, theme, ...parts]);
  return { canvas, size };
}

/** Counts changes between light and dark, because no style restyles the content of a canvas. */
function useThemeChanges(): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const onChange = (): void => setChanges((count) => count + 1);
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', onChange);
    const observer = new MutationObserver(onChange);
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => {
      system.removeEventListener('change', onChange);
      observer.disconnect();
    };
  }, []);
  return changes;
}
