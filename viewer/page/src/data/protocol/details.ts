// Single blocks, stacks and lines of source. Answers are JSON.

export interface Frame {
  readonly function: string;
  readonly file: string;
  readonly line: number; // 0: unknown
  readonly library: string;
  readonly kind: 'python' | 'native' | 'user' | 'folded'; // user: the program's own; folded: noise
}

/** `api/stacks?ids=1,2,3`, in that order. */
export interface StackInfo {
  readonly stack: number;
  readonly key: number;
  // As in `report --json`, like every label of memory: 'main (train.py:20) > MLP.forward (gpt.py:88)'.
  readonly label: string;
  readonly site: string; // the label of all stacks with this key: 'main (train.py) > MLP.forward (gpt.py)'
  // For memory of a backward pass the label is `backward_of` of its stack, and `line` of that of the
  // forward pass (labelOf in stack_cache.ts).
  readonly backward_of: string; // 'backward of '
  readonly line: string;
  readonly frames: readonly Frame[]; // innermost first
}

/** `api/block?row=`. */
export interface BlockDetails {
  readonly row: number;
  readonly lane: number;
  readonly address: string; // hex
  readonly size: number;
  readonly requested: number | null;
  readonly name: string;
  readonly category: string;
  readonly reason: string; // why that category
  readonly confidence: string;
  readonly stream: string;
  readonly thread: string;
  readonly pool: string;
  readonly tensor: string; // type and shape of the tensor it was allocated for; '' if unknown
  readonly alive: string; // why it was alive; '' if unknown
  readonly birth: number; // event; 0: before the recording
  readonly birth_ns: number;
  readonly death: number; // NEVER
  readonly death_ns: number | null;
  readonly completed: number; // event after which it could be used again; NEVER
  readonly completed_ns: number | null;
  readonly step: number | null; // step of the training loop in which it was born
  readonly phase: string;
  readonly stack: StackInfo;
  readonly free_stack: StackInfo | null;
  readonly forward_stack: StackInfo | null; // for a block born in a backward pass
  readonly segment: { readonly address: string; readonly size: number; readonly offset: number } | null;
  readonly before: Neighbour | null; // in the segment, at its birth
  readonly after: Neighbour | null;
  readonly same_stack: { readonly blocks: number; readonly live_bytes: number; readonly peak_bytes: number };
}
export interface Neighbour {
  readonly row: number; // NO_ROW: a hole
  readonly size: number;
  readonly label: string;
}

/** `api/source?file=&path=&line=`: the lines around a line that a stack of the recording names. */
export interface SourceText {
  readonly path: string;
  readonly first: number;
  readonly lines: readonly string[]; // empty if not available
  readonly note: string;
}
