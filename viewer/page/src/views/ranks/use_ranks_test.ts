import { expect, it } from 'vitest';
import { INITIAL_STATE } from '../../state/state';
import { recordedSource } from '../../testing/recordings';
import { isJob } from './use_ranks';

it('only recordings with ranks are those of a job', async () => {
  const meta = await recordedSource().meta();
  const [file] = meta.files;
  const open = (...ranks: (number | null)[]) => isJob({ ...INITIAL_STATE, meta: { ...meta, files: ranks.map((rank) => ({ ...file!, rank })) } });
  expect([open(), open(0), open(null, null), open(0, null), open(0, 1)]).toEqual([false, false, false, false, true]);
});
