import { expect, it } from 'vitest';
import { Activity } from './activity';

const settle = (): Promise<void> => Promise.resolve();

it('is idle immediately if nothing is under way', async () => {
  await new Activity().idle(settle);
});

it('waits for everything under way, and for what begins while it settles', async () => {
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

it('calls back when it is idle, unless the call was cancelled', async () => {
  const activity = new Activity();
  const end = activity.begin();
  const called: string[] = [];
  activity.after(() => called.push('kept'), settle, 60_000);
  activity.after(() => called.push('called off'), settle, 60_000)();
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(called).toEqual([]);
  end();
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(called).toEqual(['kept']);
});

it('does not wait forever for work that never ends', async () => {
  const activity = new Activity();
  activity.begin();
  await new Promise<void>((resolve) => activity.after(resolve, settle, 5));
  expect(activity.busy()).toBe(true);
});

it('ends tracked work that fails', async () => {
  const activity = new Activity();
  await expect(activity.track(Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(activity.busy()).toBe(false);
});
