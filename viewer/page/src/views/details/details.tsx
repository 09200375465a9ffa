// The details of the selection, in the drawer below or beside every view.

import type { ViewProps } from '../view';
import { BlockPanel } from './block_panel';
import { InstantPanel, RangePanel, StackPanel } from './other_panels';

export function Details(props: ViewProps) {
  const { selection } = props.state;
  switch (selection.kind) {
    case 'none':
      return null;
    case 'block':
      return <BlockPanel {...props} row={selection.row} />;
    case 'stack':
      return <StackPanel {...props} stack={selection.stack} />;
    case 'instant':
      return <InstantPanel {...props} event={selection.event} />;
    case 'range':
      return <RangePanel {...props} from={selection.from} to={selection.to} />;
  }
}
