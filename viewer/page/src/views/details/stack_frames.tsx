// The frames of a stack: noise folded, the program's own in bold, with source lines of the selected
// one.

import { useState } from 'preact/hooks';
import type { DataSource } from '../../data/data_source';
import type { Frame, StackInfo } from '../../data/protocol';
import { keyOf, useQuestion } from '../../widgets/use_question';
import { mainFrame, frameWords, groupFrames, noiseWords } from './details_text';

interface StackFramesProps {
  readonly title: string;
  readonly stack: StackInfo;
  readonly file: number;
  readonly source: DataSource;
}

export function StackFrames({ title, stack, file, source }: StackFramesProps) {
  const [chosen, setChosen] = useState<number | null>(null);
  const [isOpen, setOpen] = useState<ReadonlySet<number>>(new Set());
  const at = chosen ?? mainFrame(stack.frames);
  const frame = stack.frames[at];
  return (
    <section class="stack" aria-label={title}>
      <h4>{title}</h4>
      {stack.frames.length === 0 && <p class="muted">No stack was recorded.</p>}
      <div class="stack-columns">
        <ol>
          {groupFrames(stack.frames).flatMap((group) => {
            if (group.kind === 'frame') return [<FrameLine key={group.index} frame={group.frame} isChosen={group.index === at} onChoose={() => setChosen(group.index)} />];
            if (!isOpen.has(group.first)) {
              return [
                <li key={group.first}>
                  <button type="button" class="plain muted" aria-expanded="false" onClick={() => setOpen(new Set([...isOpen, group.first]))}>
                    {noiseWords(group.frames.length)}
                  </button>
                </li>,
              ];
            }
            return group.frames.map((each, i) => (
              <FrameLine key={group.first + i} frame={each} isChosen={group.first + i === at} onChoose={() => setChosen(group.first + i)} />
            ));
          })}
        </ol>
        {frame !== undefined && frame.file !== '' && frame.line > 0 && <Source frame={frame} file={file} source={source} />}
      </div>
    </section>
  );
}

function FrameLine({ frame, isChosen, onChoose }: { readonly frame: Frame; readonly isChosen: boolean; readonly onChoose: () => void }) {
  const words = frameWords(frame);
  return (
    <li class={`frame frame-${frame.kind}`}>
      {frame.line > 0 ? (
        <button type="button" class="plain" aria-pressed={isChosen} title={frame.library} onClick={onChoose}>{words}</button>
      ) : (
        <span>{words}</span>
      )}
    </li>
  );
}

function Source({ frame, file, source }: { readonly frame: Frame; readonly file: number; readonly source: DataSource }) {
  const asked = useQuestion(keyOf(file, frame.file, frame.line), (signal) => source.source(file, frame.file, frame.line, signal));
  const text = asked.answer;
  if (asked.failure !== '') return <p class="muted">{asked.failure}</p>;
  if (text === null) return null;
  if (text.lines.length === 0) return <p class="muted">{text.note}</p>;
  return (
    <pre class="source" tabIndex={0} aria-label={`Lines around ${frame.file}:${frame.line}`}>
      {text.lines.map((line, i) => (
        <div key={i} class={text.first + i === frame.line ? 'source-line' : undefined}>
          <span class="muted">{String(text.first + i).padStart(5)} </span>{line}
        </div>
      ))}
    </pre>
  );
}
