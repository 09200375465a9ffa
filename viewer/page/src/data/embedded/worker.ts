// A thread for the data of a standalone file, because inflating and decoding millions of events
// takes longer than a frame may.

import { EmbeddedSource } from '../embedded_source';
import { archiveFrom } from './archive';
import { CallAnswerer, type Asked, type Reply } from './calls';

const send = (reply: Reply): void => postMessage(reply);
let answerer: CallAnswerer | null = null;

addEventListener('message', ({ data }: MessageEvent<Asked>) => {
  if (data.kind === 'parts') answerer = new CallAnswerer(new EmbeddedSource(archiveFrom(data.parts)), send);
  else answerer?.take(data);
});
send({ kind: 'ready' });
