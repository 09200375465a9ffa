import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { recordedSource } from '../testing/recordings';
import { Page } from './page';

// A browser's address: its events come later than the changes that caused them.
class Address {
  hash = '';
  followed: (() => void) | null = null;
  replaced = 0;

  enter(hash: string): void {
    this.hash = hash;
  }
  stub(): void {
    const write = (_state: unknown, _title: string, hash: string): void => {
      this.hash = hash;
      ++this.replaced;
    };
    vi.stubGlobal('location', this);
    vi.stubGlobal('history', { pushState: write, replaceState: write });
    vi.stubGlobal('addEventListener', (_name: string, listener: () => void) => (this.followed = listener));
  }
}

async function opened(): Promise<Page> {
  const page = new Page(recordedSource());
  await vi.waitUntil(() => page.store.get().range.to > 1);
  return page;
}

describe('the address of a page', () => {
  let address: Address;
  beforeEach(() => {
    address = new Address();
    address.stub();
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it('is followed if it was entered while the page was about to write its own, before its event', async () => {
    const page = await opened();
    page.store.update({ cursor: 5 });
    address.enter('#v=1&sel=block-0&at=1');
    vi.runAllTimers();
    address.followed!();
    expect([page.store.get().selection, page.store.get().cursor]).toEqual([{ kind: 'block', row: 0 }, 1]);
    vi.runAllTimers();
    expect(address.hash).toMatch(/at=1&sel=block-0/);
  });

  it('is followed rather than the view that was chosen before its event', async () => {
    const page = await opened();
    vi.runAllTimers();
    address.enter('#v=1&view=flame');
    page.store.update({ view: 'table' });
    expect(page.store.get().view).toBe('flame');
  });

  it('is written again after the browser has refused a write', async () => {
    const page = await opened();
    vi.runAllTimers();
    vi.stubGlobal('history', { pushState: () => undefined, replaceState: () => undefined });
    page.store.update({ cursor: 5 });
    vi.runAllTimers();
    address.stub();
    page.store.update({ cursor: 6 });
    vi.runAllTimers();
    expect([page.store.get().cursor, address.hash]).toEqual([6, expect.stringMatching(/at=6/)]);
  });

  it('is not written if it is already up to date', async () => {
    const page = await opened();
    page.store.update({ cursor: 5 });
    vi.runAllTimers();
    const { replaced } = address;
    page.store.update({});
    vi.runAllTimers();
    expect(address.replaced).toBe(replaced);
  });

  it('has a step for a selection, and one for a series of zooms', async () => {
    const page = await opened();
    vi.runAllTimers();
    const pushed: string[] = [];
    const write = (hash: string): void => {
      address.hash = hash;
    };
    vi.stubGlobal('history', {
      pushState: (_state: unknown, _title: string, hash: string) => {
        pushed.push(hash);
        write(hash);
      },
      replaceState: (_state: unknown, _title: string, hash: string) => write(hash),
    });
    page.navigator.zoom(0.5);
    page.navigator.zoom(0.5);
    vi.advanceTimersByTime(200);
    page.navigator.zoom(0.5);
    page.store.update({ selection: { kind: 'block', row: 3 } });
    page.store.update({ selection: { kind: 'block', row: 4 } });
    vi.runAllTimers();
    expect(pushed.map((hash) => /sel=[^&]*/.exec(hash)?.[0] ?? '')).toEqual(['', 'sel=block-3', 'sel=block-4']);
    // Going back to the first of them, as the browser reports it.
    address.enter(pushed[0]!);
    address.followed!();
    expect(page.store.get().selection).toEqual({ kind: 'none' });
    vi.runAllTimers();
    expect(pushed).toHaveLength(3);
  });
});
