// Tests what is found under the pointer above the plot.

import { describe, expect, it } from 'vitest';
import type { SpanMeta } from '../../data/protocol';
import { xOf, type Viewport } from '../../render/renderer';
import { domainOf, positionOnAxis } from '../../state/navigator';
import { NO_FILTER } from '../../state/state';
import { recordedFile } from '../../testing/recordings';
import { areasOf } from './areas';
import { spanAt } from './draw_tracks';
import type { Hover } from './timeline_canvas';
import { passingAt, spanWords } from './tooltip';

const file = await recordedFile();
const areas = areasOf(file, file.lanes[0]!, 4000, 600);

function viewOf(axis: 'time' | 'event' | 'step'): Viewport {
  return { ...domainOf(file, axis), low: 0, high: 1, box: areas.plot };
}

describe.each(['time', 'event', 'step'] as const)('over %s', (axis) => {
  const view = viewOf(axis);
  const spanMidpoint = (begin: number, beginNs: number, end: number, endNs: number): number =>
    (xOf(view, positionOnAxis(file, axis, begin, beginNs)) + xOf(view, positionOnAxis(file, axis, end, endNs))) / 2;
  const middle = (span: SpanMeta): number => spanMidpoint(span.begin, span.begin_ns, span.end, span.end_ns);

  it('finds each step', () => {
    const { begin, end, begin_ns: beginNs, end_ns: endNs } = file.steps;
    for (let i = 0; i < begin.length; ++i) {
      const x = axis === 'step' ? xOf(view, i + 1.5) : spanMidpoint(begin[i]!, beginNs[i]!, end[i]!, endNs[i]!);
      expect(spanAt(file, axis, areas, view, x, areas.steps!.top + 5)?.name).toBe(`step ${i + 1}`);
    }
  });
  it('finds phases and ranges', () => {
    for (const phase of file.phases) expect(spanAt(file, axis, areas, view, middle(phase), areas.phases!.top + 5)).toBe(phase);
    for (const range of file.ranges.filter(({ depth }) => depth < areas.ranges.length)) {
      expect(spanAt(file, axis, areas, view, middle(range), areas.ranges[range.depth]!.top + 5)?.name).toBe(range.name);
    }
  });
  it('finds none elsewhere', () => expect(spanAt(file, axis, areas, view, areas.plot.left + 50, areas.plot.top + 50)).toBeNull());
});

describe('the description of a span', () => {
  it('has its name, its duration and where it is', () => {
    const span = { name: 'backward', kind: 'backward', begin: 1200, end: 1201, begin_ns: 4e6, end_ns: 5.5e6, depth: 0, thread: 0 };
    expect(spanWords(span)).toEqual(['backward', '1.50 ms', '1 event, from event 1,200']);
  });
});

it('the bytes that match the filter are shown everywhere in the plot, and nowhere else', () => {
  const passing = { query: { file: 0, lane: 0, axis: 'event', from: 0, to: 2, columns: 2, filter: NO_FILTER }, live: Float64Array.of(1024, NaN) } as const;
  const at = (position: number, value: number): Hover => ({ x: 0, y: 0, position, value, item: null, instant: null, span: null });
  expect(passingAt(at(0.5, 7), passing)).toEqual(['filter: 1.00 KiB here']);
  expect([passingAt(at(1.5, 7), passing), passingAt(at(0.5, NaN), passing), passingAt(at(0.5, 7), null)]).toEqual([[], [], []]);
});
