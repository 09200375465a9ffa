// The views, in the order of their tabs; keys 1..9 go by it.

import type { ViewName } from '../state/state';
import { FLAME_VIEW } from '../views/flame/flame_view';
import { SEGMENTS_VIEW } from '../views/segments/segments_view';
import { TABLE_VIEW } from '../views/table/table_view';
import type { View } from '../views/view';

export const VIEWS: Partial<Record<ViewName, View>> = { flame: FLAME_VIEW, table: TABLE_VIEW, segments: SEGMENTS_VIEW };
