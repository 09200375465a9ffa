import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { activity } from '../base/activity';
import { news } from '../base/news';
import type { DataSource } from '../data/data_source';
import type { FileProgress } from '../data/protocol';
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

async function opened(source = recordedSource()): Promise<Page> {
  const page = new Page(source);
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

  // Returns the addresses that are added to the browser's history from now on.
  function added(): string[] {
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
    return pushed;
  }

  it('has one step for a place and its range, however late the data of the range arrive', async () => {
    const source = recordedSource();
    const page = await opened(source);
    vi.runAllTimers();
    const pushed = added();
    const curve = source.curve.bind(source);
    vi.spyOn(source, 'curve').mockImplementation(async (window) => {
      vi.setSystemTime(Date.now() + 1000);
      return curve(window);
    });
    page.store.update({ axis: 'time' });
    vi.runAllTimers();
    page.store.update({ view: 'timeline' });
    await page.navigator.showEvents(2, 9);
    vi.runAllTimers();
    expect(pushed).toHaveLength(2);
    expect(address.hash).toMatch(/view=timeline&.*range=/);
  });

  it('has a step for a selection, and one for a series of zooms', async () => {
    const page = await opened();
    vi.runAllTimers();
    const pushed = added();
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

describe('the progress that the server reports', () => {
  beforeEach(() => new Address().stub());
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  async function watching(): Promise<{ page: Page; report: (state: FileProgress['state']) => Promise<void>; lose: () => void }> {
    const source = recordedSource();
    const watch = vi.spyOn(source as DataSource, 'watchProgress').mockReturnValue(() => undefined);
    const page = await opened(source);
    const [onProgress, onLost] = watch.mock.calls[0]!;
    const report = async (state: FileProgress['state']): Promise<void> => {
      onProgress({ files: [{ file: 0, state, what: '', fraction: 1, error: '' }] });
      await activity.idle(() => Promise.resolve());
    };
    return { page, report, lose: onLost! };
  }

  it('makes components ask again when more of the shown recording can be answered', async () => {
    const { report } = await watching();
    const heard = vi.fn();
    const end = news.listen(heard);
    const counts: number[] = [];
    for (const state of ['coarse', 'coarse', 'blocks', 'ready', 'ready'] as const) {
      await report(state);
      counts.push(heard.mock.calls.length);
    }
    end();
    expect(counts).toEqual([0, 0, 1, 2, 2]);
  });

  it('makes them ask again even if the stages follow each other faster than the page asks about the files', async () => {
    const { report } = await watching();
    const heard = vi.fn();
    const end = news.listen(heard);
    await Promise.all([report('coarse'), report('ready')]);
    end();
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it('shows since when nothing is received, until something is', async () => {
    const { page, report, lose } = await watching();
    const clock = vi.spyOn(Date, 'now').mockReturnValue(1000);
    lose();
    clock.mockReturnValue(2000);
    lose();
    expect(page.store.get().lostAt).toBe(1000);
    clock.mockRestore();
    await report('ready');
    expect(page.store.get().lostAt).toBeNull();
  });
});
