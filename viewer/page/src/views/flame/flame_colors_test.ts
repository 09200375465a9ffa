import { describe, expect, it } from 'vitest';
import { luminance } from '../../render/palette';
import { categoryColor } from './flame_colors';

const CATEGORIES = ['unknown', 'parameters', 'gradients', 'optimizer_state', 'activations', 'recomputed', 'temporaries', 'inputs', 'workspaces', 'communication', 'graph_pools', 'kv_cache', 'other_libraries', 'cache'];
const CONTRAST = 4.5; // WCAG 2, AA

describe('the colour of a category', () => {
  it.each(CATEGORIES)('is light enough for black text: %s', (name) => {
    for (const share of [0, 0.5, 1]) expect((luminance(categoryColor(name, share)) + 0.05) / 0.05).toBeGreaterThan(CONTRAST);
  });

  it('differs between categories', () => expect(new Set(CATEGORIES.map((name) => categoryColor(name, 1))).size).toBe(CATEGORIES.length));

  it('is paler for a smaller share', () => expect(luminance(categoryColor('parameters', 0.3))).toBeGreaterThan(luminance(categoryColor('parameters', 0.9))));
});
