// The views, in the order of their tabs and of their keys.

import type { Hotkey } from '../base/hotkeys';
import type { ViewName } from '../state/state';
import { FRAG_VIEW, LEAKS_VIEW, LEDGER_VIEW, OOM_VIEW } from '../views/answers/answer_view';
import { COMPARE_VIEW } from '../views/compare/compare_view';
import { FLAME_VIEW } from '../views/flame/flame_view';
import { LANES_VIEW } from '../views/lanes/lanes_view';
import { OVERVIEW } from '../views/overview/overview_view';
import { RANKS_VIEW } from '../views/ranks/ranks_view';
import { SEGMENTS_VIEW } from '../views/segments/segments_view';
import { TABLE_VIEW } from '../views/table/table_view';
import { TIMELINE_VIEW } from '../views/timeline/timeline_view';
import type { View } from '../views/view';

export const VIEW_KEYS: readonly Hotkey[] = ['1', '2', '3', '4', '5', '6', '7', '8', '9', 'M', 'Shift+L', 'Shift+R'];

export const VIEWS: Partial<Record<ViewName, View>> = {
  overview: OVERVIEW,
  timeline: TIMELINE_VIEW,
  flame: FLAME_VIEW,
  table: TABLE_VIEW,
  segments: SEGMENTS_VIEW,
  leaks: LEAKS_VIEW,
  oom: OOM_VIEW,
  ledger: LEDGER_VIEW,
  frag: FRAG_VIEW,
  compare: COMPARE_VIEW,
  lanes: LANES_VIEW,
  ranks: RANKS_VIEW,
};
