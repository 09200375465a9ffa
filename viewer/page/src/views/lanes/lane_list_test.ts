import { describe, expect, it } from 'vitest';
import type { FileMeta } from '../../data/protocol';
import { INITIAL_STATE, type LanesOptions } from '../../state/state';
import { allLanes, arrangedLanes, heapTitle, movedLane, shownLanes, toggledName, withShown, type ArrangedLanes } from './lane_list';

const LABELS = ['GPU 0 · PyTorch blocks', 'GPU 0 · driver memory', 'Host memory (pinned)'];

function recording(file: number, lanes = LABELS.length): FileMeta {
  return { file, lanes: LABELS.slice(0, lanes).map((label, lane) => ({ lane, label })) } as unknown as FileMeta;
}

const TWO = [recording(0), recording(1)];
const options = (change: Partial<LanesOptions> = {}): LanesOptions => ({ ...INITIAL_STATE.lanes, ...change });
const ids = ({ pinned, others }: ArrangedLanes): string[][] => [pinned, others].map((part) => part.map(({ id }) => id));

describe('lanes that are shown', () => {
  it('are all of one recording, the first one of each of several', () => {
    expect([...shownLanes([recording(0)], options())]).toEqual(['0.0', '0.1', '0.2']);
    expect([...shownLanes(TWO, options())]).toEqual(['0.0', '1.0']);
  });
  it('include recordings that have none, or none yet', () => {
    expect([...shownLanes([recording(0), recording(1, 0)], options())]).toEqual(['0.0', '1']);
  });
  it('can be shown and hidden, and again', () => {
    const shown = options({ toggled: withShown(TWO, options(), ['0.0', '0.1', '1.1'], true) });
    expect(shown.toggled).toEqual(['0.1', '1.1']); // the first one is shown already
    expect([...shownLanes(TWO, shown)]).toEqual(['0.0', '0.1', '1.0', '1.1']);
    const hidden = options({ toggled: withShown(TWO, shown, ['0.0', '0.1'], false) });
    expect([...shownLanes(TWO, hidden)]).toEqual(['1.0', '1.1']);
    expect(withShown(TWO, hidden, ['0.0'], true)).toEqual(['1.1']);
  });
  it('are those of recordings that are open: others in an address change nothing', () => {
    expect(ids(arrangedLanes(TWO, options({ toggled: ['7.0'], order: ['9.1', '1.0'], pinned: ['5'] })))).toEqual([[], ['1.0', '0.0']]);
  });
});

describe('the order of lanes', () => {
  it('is that of the recordings; pinned ones are above the others', () => {
    expect(ids(arrangedLanes(TWO, options({ toggled: ['0.2'], pinned: ['1.0'] })))).toEqual([['1.0'], ['0.0', '0.2']]);
  });
  it('is the one by hand, followed by lanes that were added since', () => {
    expect(ids(arrangedLanes(TWO, options({ toggled: ['0.1', '1.2'], order: ['1.0', '0.0'] })))).toEqual([[], ['1.0', '0.0', '0.1', '1.2']]);
  });
  it('changes within the pinned ones, and within the others', () => {
    const lanes = arrangedLanes(TWO, options({ toggled: ['0.1', '0.2', '1.1'], pinned: ['1.0', '0.2'] }));
    expect(ids(lanes)).toEqual([['0.2', '1.0'], ['0.0', '0.1', '1.1']]);
    expect(movedLane(lanes, '0.0', 1)).toEqual(['0.2', '1.0', '0.1', '0.0', '1.1']);
    expect(movedLane(lanes, '1.1', -2)).toEqual(['0.2', '1.0', '1.1', '0.0', '0.1']);
    expect(movedLane(lanes, '1.0', -1)).toEqual(['1.0', '0.2', '0.0', '0.1', '1.1']);
    expect(movedLane(lanes, '0.2', -3)).toEqual(['0.2', '1.0', '0.0', '0.1', '1.1']);
  });
  it('is kept by a lane that is pinned and released', () => {
    const order = ['1.0', '0.0'];
    const pinned = toggledName([], '0.0');
    expect(ids(arrangedLanes(TWO, options({ order, pinned })))).toEqual([['0.0'], ['1.0']]);
    expect(ids(arrangedLanes(TWO, options({ order, pinned: toggledName(pinned, '0.0') })))).toEqual([[], ['1.0', '0.0']]);
  });
});

it('the name of a heap is the same on every device', () => {
  expect(allLanes([recording(0)]).map(({ lane }) => heapTitle(lane!))).toEqual(['PyTorch blocks', 'driver memory', 'Host memory (pinned)']);
});
