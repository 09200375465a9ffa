// The views, in the order of their tabs; keys 1..9 go by it.

import type { ViewName } from '../state/state';
import type { View } from '../views/view';

export const VIEWS: Partial<Record<ViewName, View>> = {};
