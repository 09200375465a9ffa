import { expect, it } from 'vitest';
import { titleIn } from './dialogs';

it('below its group, a command has a title without it', () => {
  expect(titleIn('Timeline', 'Timeline: zoom in on bytes')).toBe('Zoom in on bytes');
  expect(titleIn('Views', 'Show Timeline')).toBe('Show Timeline');
});
