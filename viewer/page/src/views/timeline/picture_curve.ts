// A curve over the picture of a timeline that depends on a key, such as a filter. It is requested
// once per picture. Until the answer has come, the curve of the previous picture is shown.

import { activity } from '../../base/activity';
import { messageOf } from '../../data/data_source';
import type { Window } from '../../data/protocol';
import type { Picture } from './tiles';

export type Pictured = Pick<Picture, 'subject' | 'curve'>;

export class PictureCurve<Key, Curve> {
  /** Why there is no curve of the last key; '' if there is one, or none is known yet. */
  failure = '';
  private asked: { readonly picture: Pictured; readonly key: Key } | null = null;
  private known: { readonly key: Key; readonly axis: string; readonly curve: Curve } | null = null;
  private abort = new AbortController();

  constructor(
    private readonly ask: (window: Window, key: Key, signal: AbortSignal) => Promise<Curve>,
    private readonly onChange: () => void,
  ) {}

  /**
   * Returns the curve, or null if `key` is null or nothing is known on that axis yet. Returns the
   * same object until another answer has come.
   */
  look(picture: Pictured, key: Key | null): Curve | null {
    if (key === null) {
      this.stop();
      return null;
    }
    if (this.known?.key !== key || this.known.axis !== axisOf(picture)) this.known = null;
    if (this.asked?.picture !== picture || this.asked.key !== key) {
      this.abort.abort();
      this.abort = new AbortController();
      this.failure = '';
      this.asked = { picture, key };
      void activity.track(this.load(picture, key, this.abort.signal));
    }
    return this.known?.curve ?? null;
  }

  stop(): void {
    this.abort.abort();
    this.asked = null;
    this.known = null;
    this.failure = '';
  }

  private async load(picture: Pictured, key: Key, signal: AbortSignal): Promise<void> {
    try {
      const { file, lane, axis, from, to, columns } = picture.curve.window;
      const curve = await this.ask({ file, lane, axis, from, to, columns }, key, signal);
      if (signal.aborted) return;
      this.known = { key, axis: axisOf(picture), curve };
    } catch (error) {
      if (signal.aborted) return;
      this.known = null;
      this.failure = messageOf(error);
    }
    this.onChange();
  }
}

function axisOf({ subject }: Pictured): string {
  return `${subject.file}/${subject.lane}/${subject.axis}/${subject.window}`;
}
