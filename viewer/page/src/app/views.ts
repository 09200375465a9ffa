// The views, in the order of their tabs and of the keys 1..9.

import type { ViewName } from '../state/state';
import { FRAG_VIEW, LEAKS_VIEW, LEDGER_VIEW, OOM_VIEW } from '../views/answers/answer_view';
import { COMPARE_VIEW } from '../views/compare/compare_view';
import { FLAME_VIEW } from '../views/flame/flame_view';
import { SEGMENTS_VIEW } from '../views/segments/segments_view';
import { TABLE_VIEW } from '../views/table/table_view';
import { TIMELINE_VIEW } from '../views/timeline/timeline_view';
import type { View } from '../views/view';

export const VIEWS: Partial<Record<ViewName, View>> = {
  timeline: TIMELINE_VIEW,
  flame: FLAME_VIEW,
  table: TABLE_VIEW,
  segments: SEGMENTS_VIEW,
  leaks: LEAKS_VIEW,
  oom: OOM_VIEW,
  ledger: LEDGER_VIEW,
  frag: FRAG_VIEW,
  compare: COMPARE_VIEW,
};
