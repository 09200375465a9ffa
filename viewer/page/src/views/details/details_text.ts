// Formats a block or a stack as text to be copied into a mail or an issue.

import { words } from '../../base/words';
import { formatBytes, formatCount, formatExactBytes } from '../../base/format_bytes';
import { plural } from '../../base/plural';
import { formatDuration, formatMoment } from '../../base/format_time';
import { NEVER, NO_ROW, type BlockDetails, type Frame, type Neighbour, type StackInfo } from '../../data/protocol';

export type Fact = readonly [name: string, value: string];

export function frameWords(frame: Frame): string {
  const where = frame.file === '' ? frame.library : frame.line === 0 ? frame.file : `${frame.file}:${frame.line}`;
  return where === '' ? frame.function : `${frame.function}  ${where}`;
}

/** Frames as shown: each frame by itself, but consecutive noise frames as one group. */
export type FrameGroup = { readonly kind: 'frame'; readonly frame: Frame; readonly index: number } | { readonly kind: 'noise'; readonly first: number; readonly frames: readonly Frame[] };

export function groupFrames(frames: readonly Frame[]): FrameGroup[] {
  const groups: FrameGroup[] = [];
  for (const [index, frame] of frames.entries()) {
    const last = groups.at(-1);
    if (frame.kind !== 'folded') groups.push({ kind: 'frame', frame, index });
    else if (last?.kind === 'noise') groups[groups.length - 1] = { ...last, frames: [...last.frames, frame] };
    else groups.push({ kind: 'noise', first: index, frames: [frame] });
  }
  return groups;
}

/**
 * Returns the index of the frame to show first: the innermost frame of the program itself,
 * otherwise the innermost with a line that is not noise. Returns -1 if there is none.
 */
export function mainFrame(frames: readonly Frame[]): number {
  const own = frames.findIndex((frame) => frame.kind === 'user' && frame.line > 0);
  return own >= 0 ? own : frames.findIndex((frame) => frame.line > 0 && frame.kind !== 'folded');
}

/** Returns the lines of a stack as the panel shows them at first. */
function shownFrames(frames: readonly Frame[]): string[] {
  return groupFrames(frames).map((group) => (group.kind === 'frame' ? frameWords(group.frame) : noiseWords(group.frames.length)));
}

export function noiseWords(frames: number): string {
  return plural(frames, 'library frame');
}

function moment(event: number, ns: number): string {
  return `${formatMoment(ns, 1e3)}, event ${formatCount(event)}`;
}

/** Returns when the block was allocated, freed and usable again. */
export function lifeFacts(block: BlockDetails): Fact[] {
  const facts: Fact[] = [['allocated', block.birth === 0 ? 'before the recording began' : moment(block.birth, block.birth_ns)]];
  if (block.death === NEVER || block.death_ns === null) return [...facts, ['freed', 'never']];
  facts.push(['freed', moment(block.death, block.death_ns)], ['held', formatDuration(block.death_ns - block.birth_ns)]);
  if (block.completed === NEVER) facts.push(['usable again', 'never: it was still waiting for another stream when the recording ended']);
  else if (block.completed !== block.death && block.completed_ns !== null) {
    facts.push(['usable again', `${moment(block.completed, block.completed_ns)}: held ${formatDuration(block.completed_ns - block.death_ns)} longer by another stream`]);
  }
  return facts;
}

/** The reason as the recording has it, for what autograd saves. */
export const SAVED = 'saved for backward';

/** Returns why the block was alive, and what its tensor was. */
export function aliveWords({ alive, tensor, category, reason, confidence }: BlockDetails): string {
  const guess = category === 'unknown' ? 'Why it was alive is not known' : `Probably ${words(category)}: ${reason} (confidence ${confidence})`;
  const why = alive === '' ? guess : `Alive as: ${alive}`;
  return tensor === '' ? `${why}.` : `${why}. Tensor: ${tensor}.`;
}

export function blockFacts(block: BlockDetails): Fact[] {
  const facts: Fact[] = [['size', `${formatBytes(block.size)} (${formatExactBytes(block.size)})`]];
  if (block.requested !== null && block.requested !== block.size) {
    facts.push(['requested', `${formatExactBytes(block.requested)}, ${formatBytes(block.size - block.requested)} added by rounding`]);
  }
  facts.push(['address', block.address]);
  if (block.name !== '') facts.push(['name', block.name]);
  facts.push(['category', `${words(block.category)}: ${block.reason} (confidence ${block.confidence})`]);
  if (block.alive !== '') facts.push(['alive as', block.alive]);
  if (block.tensor !== '') facts.push(['tensor', block.tensor]);
  if (block.step !== null) facts.push(['step', `${formatCount(block.step)}${block.phase === '' ? '' : `, ${block.phase}`}`]);
  else if (block.phase !== '') facts.push(['phase', block.phase]);
  facts.push(...lifeFacts(block));
  for (const [name, value] of [['stream', block.stream], ['thread', block.thread], ['pool', block.pool]] as const) if (value !== '') facts.push([name, value]);
  if (block.segment !== null) facts.push(['segment', `${block.segment.address}, ${formatBytes(block.segment.size)}, offset ${formatBytes(block.segment.offset)}`]);
  facts.push(['from this stack', `${plural(block.same_stack.blocks, 'block')}, peak ${formatBytes(block.same_stack.peak_bytes)}, ${formatBytes(block.same_stack.live_bytes)} live when it was allocated`]);
  return facts;
}

export function neighbourWords(neighbour: Neighbour | null): string {
  if (neighbour === null) return 'none: the edge of the segment';
  return neighbour.row === NO_ROW ? `free, ${formatBytes(neighbour.size)}` : `${formatBytes(neighbour.size)}  ${neighbour.label}`;
}

function stackLines(title: string, stack: StackInfo | null): string[] {
  return stack === null || stack.frames.length === 0 ? [] : ['', `${title}:`, ...shownFrames(stack.frames).map((line) => `  ${line}`)];
}

export function blockText(block: BlockDetails): string {
  const facts = [...blockFacts(block), ['before it', neighbourWords(block.before)], ['after it', neighbourWords(block.after)]] as const;
  const wide = Math.max(...facts.map(([name]) => name.length)) + 2;
  return [
    ...facts.map(([name, value]) => `${name.padEnd(wide)}${value}`),
    ...stackLines('allocated at', block.stack),
    ...stackLines('forward call', block.forward_stack),
    ...stackLines('freed at', block.free_stack),
    '',
  ].join('\n');
}

export function blockMarkdown(block: BlockDetails): string {
  const rows = blockFacts(block).map(([name, value]) => `| ${name} | ${value.replaceAll('|', '\\|')} |`);
  const stacks = ([['Allocated at', block.stack], ['Forward call', block.forward_stack], ['Freed at', block.free_stack]] as const).flatMap(([title, stack]) =>
    stack === null || stack.frames.length === 0 ? [] : ['', `**${title}**`, '', ...stackMarkdown(stack)],
  );
  return [`**${formatBytes(block.size)} from ${escapeMarkdown(block.stack.label)}**`, '', '| | |', '|---|---|', ...rows, ...stacks, ''].join('\n');
}

export function stackText(stack: StackInfo): string {
  return [...shownFrames(stack.frames), ''].join('\n');
}

export function stackMarkdown(stack: StackInfo): string[] {
  const lines = shownFrames(stack.frames);
  // The fence must be longer than any run of backticks inside it.
  const longest = Math.max(2, ...lines.map((line) => Math.max(0, ...(line.match(/`+/g) ?? []).map((run) => run.length))));
  const fence = '`'.repeat(longest + 1);
  return [fence, ...lines, fence];
}

function escapeMarkdown(text: string): string {
  return text.replace(/[*_`[\]<>|\\]/g, '\\$&');
}
