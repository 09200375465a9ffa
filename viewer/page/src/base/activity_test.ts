import { expect, it } from 'vitest';
import { Activity } from './activity';

const settle = (): Promise<void> => Promise.resolve();

it('is idle at once when nothing is under way', async () => {
  await new Activity().idle(settle);
});

it('waits for all that is under way, and for what begins while it settles', async () => {
  const activity = new Activity();
  const first = activity.begin();
  let second: (() => void) | null = null;
  let done = false;
  const idle = activity
    .idle(() => {
      second ??= activity.begin();
      return Promise.resolve();
    })
    .then(() => (done = true));
  first();
  first();
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(done).toBe(false);
  expect(second).not.toBeNull();
  second!();
  await idle;
  expect(activity.busy()).toBe(false);
});

it('ends also with what fails', async () => {
  const activity = new Activity();
  await expect(activity.track(Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(activity.busy()).toBe(false);
});
