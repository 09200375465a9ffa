import { describe, expect, it } from 'vitest';
import { Json } from '../../base/json';
import type { Answer, AnswerName, FileMeta } from '../../data/protocol';
import { recordedFile } from '../../testing/recordings';
import type { Answers } from '../../widgets/use_answers';
import { roomWords } from './allocators';
import { overviewOf } from './overview';
import { runFacts } from './run_facts';

const GIB = 2 ** 30;
const REPORT = {
  run: { argv: ['train'], imported_from: null, complete: true, libraries: { torch: '2.11.0', cuda_driver: '13.0' }, settings: { PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True' }, sources: { cupti: 'off', native_stacks: 'own', nvml: 'on' } },
  devices: [
    { index: null, bytes: 5 },
    {
      index: 0, name: 'H100', total_bytes: 80 * GIB, t_ns: 7, bytes: 10 * GIB, allocated_bytes: 9 * GIB, peak_bytes: 11 * GIB,
      heaps: [{ heap: 'driver', reserved_bytes: null }, { heap: 'pytorch', reserved_bytes: 10 * GIB }],
      categories: [{ category: 'cache', bytes: GIB }, { category: 'optimizer_state', bytes: 5 * GIB }, { category: 'activations', bytes: 4 * GIB }],
      device_use: [{ source: 'nvml', fullest: { used_bytes: 14 * GIB } }],
      step_profile: {
        floor_bytes: 5 * GIB, variable_bytes: 4 * GIB,
        floor_categories: [{ category: 'optimizer_state', bytes: 5 * GIB }],
        peak_categories: [{ category: 'optimizer_state', bytes: 5 * GIB }, { category: 'activations', bytes: 4 * GIB }],
      },
      allocators: [
        { name: 'cudaMalloc', live_bytes: GIB, live_count: 3, peak_bytes: 2 * GIB, peak_t_ns: 5 },
        { name: 'caching allocator (pytorch)', live_bytes: 8 * GIB, live_count: 1200, peak_bytes: 8 * GIB, peak_t_ns: 7 },
      ],
      room: { total_bytes: 80 * GIB, free_bytes: 60 * GIB, largest_cached_bytes: GIB, releasable_bytes: GIB, largest_request_bytes: 61 * GIB },
      steps: { source: 'mark step', count: 12, typical: { peak_bytes: 9 * GIB, peak_phase: 'forward', steps: 11, steps_with_peak_phase: 9, growth_bytes: GIB, phases: { forward: { peak_bytes: 9 * GIB, change_bytes: 4 * GIB } } } },
    },
  ],
};

function known(answers: Partial<Record<AnswerName, unknown>>): Answers {
  const entries = Object.entries(answers).map(([name, json]) => [name, { name, headline: name, text: '', json } as Answer]);
  return { of: Object.fromEntries(entries) as Answers['of'], failure: '' };
}

describe('an overview', () => {
  it('lists what is wrong apart from what else was checked, what is open first', async () => {
    const answers = known({ oom: { verdict: 'none' }, leaks: { enough: false }, frag: {}, ledger: { driver_used_bytes: 10, unexplained_bytes: 9 } });
    const { problems, checked, missing } = overviewOf(answers, await recordedFile());
    expect(problems.map(({ name }) => name)).toEqual(['ledger']);
    expect(checked.map(({ name, mood }) => [name, mood])).toEqual([['leaks', 'unsure'], ['oom', 'calm'], ['frag', 'calm']]);
    expect(missing).toEqual(['report']);
  });

  it('knows how much room the fullest moment left, as the driver counts', async () => {
    const { headroom } = overviewOf(known({ report: REPORT }), await recordedFile());
    expect(headroom).toEqual({ device: 0, bytes: 66 * GIB, capacity: 80 * GIB, most: 14 * GIB, basis: 'the most in use according to the driver' });
    const [host, gpu] = REPORT.devices;
    const unseen = { ...REPORT, devices: [host, { ...gpu, device_use: [] }] };
    expect(overviewOf(known({ report: unseen }), await recordedFile()).headroom).toMatchObject({ bytes: 69 * GIB, basis: 'the peak' });
  });

  it('counts what the ledger says is in use at the peak if the driver was only asked before', async () => {
    const headroomAfter = async (driver_used_bytes: number) => {
      const ledger = { devices: [{ device: 1, driver_used_bytes: 70 * GIB }, { device: 0, driver_used_bytes }] };
      return overviewOf(known({ report: REPORT, ledger }), await recordedFile()).headroom;
    };
    expect(await headroomAfter(20 * GIB)).toMatchObject({ bytes: 60 * GIB, most: 20 * GIB, basis: 'what the GPU used at the peak' });
    expect(await headroomAfter(12 * GIB)).toMatchObject({ most: 14 * GIB });
  });

  it('divides the peak of each GPU by category, the cache last', async () => {
    const { peaks } = overviewOf(known({ report: REPORT }), await recordedFile());
    expect(peaks).toHaveLength(1);
    const [peak] = peaks;
    expect(peak!.parts.map(({ name }) => name)).toEqual(['optimizer state', 'activations', 'cache']);
    expect(peak!.parts[0]!.link).toMatchObject({ view: 'timeline', category: 'optimizer_state', device: 0, t_ns: 7 });
    expect(peak!.marks).toEqual([{ name: 'reserved', bytes: 10 * GIB }, { name: 'capacity', bytes: 80 * GIB }]);
    expect(peak!.stepWords).toEqual({ floor: '5.00 GiB: optimizer state 5.00 GiB', variable: '4.00 GiB: activations +4.00 GiB' });
  });

  it('lists the allocators as the report does, and what a request could get', async () => {
    const { allocators } = overviewOf(known({ report: REPORT }), await recordedFile()).peaks[0]!;
    expect(allocators!.rows.map((row) => row.map(({ text }) => text))).toEqual([
      ['cudaMalloc', '1.00 GiB', '3', '2.00 GiB', '5 ns'],
      ['caching allocator (pytorch)', '8.00 GiB', '1,200', '8.00 GiB', '7 ns'],
    ]);
    expect(allocators!.note).toBe('At this peak about 60.0 GiB were free of 80.0 GiB, the largest free piece of the cache had 1.00 GiB; a request of up to 61.0 GiB would have succeeded.');
    const words = (room: unknown): string => roomWords(new Json(room));
    expect(words({ free_bytes: null, largest_cached_bytes: 0 })).toBe('');
    expect(words({ free_bytes: null, largest_cached_bytes: GIB })).toBe('At this peak the largest free piece of the cache had 1.00 GiB; free driver memory is unknown.');
    expect(words({ free_bytes: GIB, total_bytes: null, largest_request_bytes: GIB })).toBe('At this peak about 1.00 GiB were free; a request of up to 1.00 GiB would have succeeded.');
  });

  it('has the duration of a phase where the recording has its spans', async () => {
    const file = await recordedFile();
    const span = { name: 'forward', kind: 'forward', begin: 0, end: 1, depth: 0, thread: 0 };
    const steps = { ...file.steps, end: [5, 9] };
    const timed: FileMeta = { ...file, steps, phases: [{ ...span, begin_ns: 0, end_ns: 3e6 }, { ...span, begin_ns: 5e6, end_ns: 6e6 }] };
    const rows = (of: FileMeta): string[][] => overviewOf(known({ report: REPORT }), of).peaks[0]!.phases!.rows.map((row) => row.map(({ text }) => text));
    expect(rows(timed)).toEqual([['forward', '2.00 ms', '9.00 GiB', '+4.00 GiB']]);
    expect(rows({ ...file, phases: [] })).toEqual([['forward', '', '9.00 GiB', '+4.00 GiB']]);
  });

  it.each([null, 3, { devices: [null, { index: 0, bytes: 1 }] }])('accepts a report of an unexpected shape: %j', async (json) => {
    const file = await recordedFile();
    expect(() => overviewOf(known({ report: json }), file)).not.toThrow();
    expect(() => runFacts(file, json)).not.toThrow();
  });
});

describe('the facts of a run', () => {
  it('name the program, what it used and how it was recorded', async () => {
    const facts = Object.fromEntries(runFacts({ ...(await recordedFile()), argv: ['python', 'train.py'], lacks: [] }, REPORT));
    expect(facts).toMatchObject({
      Command: 'python train.py', GPU: 'H100, 80.0 GiB', Versions: 'torch 2.11.0, cuda driver 13.0',
      Settings: 'PYTORCH_CUDA_ALLOC_CONF expandable_segments:True', Sources: 'cupti off; native stacks: own unwinder; nvml on', Recording: 'complete',
    });
  });

  it('name the peak as the program does', async () => {
    const file = await recordedFile();
    const titleOf = (device: object): string => overviewOf(known({ report: { devices: [{ index: 0, bytes: 1, t_ns: 2e9, allocated_bytes: 9 * GIB, ...device }] } }), file).peaks[0]!.title;
    expect(titleOf({ peak_bytes: 11 * GIB })).toBe('Peak of GPU 0: 9.00 GiB allocated at 2.00 s; up to 11.0 GiB taken from the driver');
    expect(titleOf({ peak_bytes: 9 * GIB })).toBe('Peak of GPU 0: 9.00 GiB allocated at 2.00 s');
  });

  it('count one step and several', async () => {
    const file = await recordedFile();
    const lengthOf = (end: number[]) => Object.fromEntries(runFacts({ ...file, steps: { ...file.steps, end } }, REPORT))['Length'];
    expect([lengthOf([5]), lengthOf([5, 9])]).toEqual([expect.stringMatching(/, 1 step$/), expect.stringMatching(/, 2 steps$/)]);
    const report = { devices: [{ index: 0, bytes: 1, steps: { source: 'mark step', count: 1, typical: { phases: { forward: {} } } } }] };
    expect(overviewOf(known({ report }), file).peaks[0]!.phases!.note).toMatch(/^1 step by mark step;/);
    const { title, note } = overviewOf(known({ report: REPORT }), file).peaks[0]!.phases!;
    expect(title).toBe('A typical step peaks at 9.00 GiB in forward (9 of 11)');
    expect(note).toBe('12 steps by mark step; the typical one grows by +1.00 GiB.');
  });

  it('say that a recording is cut off, and leave out what is not known', async () => {
    const facts = runFacts({ ...(await recordedFile()), argv: [], lacks: ['it ends in the middle'] }, { run: { complete: false } });
    expect(Object.fromEntries(facts)['Recording']).toBe('not complete; 1 note above');
    expect(facts.map(([name]) => name)).not.toContain('Command');
  });
});
