// What a browser test needs to know and cannot see: when the page is idle, its state, and its
// commands.

import { activity } from '../base/activity';
import type { State } from '../state/state';
import type { Page } from './page';

export interface TestHooks {
  readonly idle: () => Promise<void>;
  readonly state: () => State;
  readonly commands: () => readonly { readonly id: string; readonly title: string; readonly hotkeys: readonly string[] }[];
}

declare global {
  interface Window {
    gmtTest?: TestHooks;
  }
}

export function installTestHooks(page: Page): void {
  window.gmtTest = {
    idle: async () => {
      do await activity.idle(twoFrames);
      while (!page.hasFollowedAddress());
    },
    state: () => page.store.get(),
    commands: () => page.commands.all().map(({ id, title, hotkeys }) => ({ id, title, hotkeys })),
  };
}

// A change of state is drawn in the next frame.
async function twoFrames(): Promise<void> {
  for (let i = 0; i < 2; ++i) await new Promise((resolve) => requestAnimationFrame(resolve));
}
