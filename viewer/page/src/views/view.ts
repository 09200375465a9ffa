// A view is a component that shows one aspect of the state; src/app/shell.tsx places it.

import type { ComponentType } from 'preact';
import type { DataSource } from '../data/data_source';
import type { Commands } from '../state/commands';
import type { Navigator } from '../state/navigator';
import type { State } from '../state/state';
import type { Store } from '../state/store';
import type { Answers } from '../widgets/use_answers';

export interface ViewProps {
  readonly state: State;
  readonly store: Store;
  readonly source: DataSource;
  readonly commands: Commands;
  readonly navigator: Navigator;
  /** What is known so far about the file that is shown. */
  readonly answers: Answers;
  /** Announces a change to users of screen readers. */
  readonly announce: (text: string) => void;
}

export interface View {
  readonly title: string;
  readonly component: ComponentType<ViewProps>;
}
