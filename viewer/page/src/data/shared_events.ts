// One stream of server-sent events for all tabs of a server. A browser opens at most six connections
// to a host, which its tabs share. If each tab had a stream of its own, six tabs would leave no
// connection for questions.
//
// The tab that holds a lock reads the stream, and passes what it receives on to the others. When it
// is closed, another one gets the lock.

/** A stream of events from the server. */
export interface Events {
  onmessage: ((message: MessageEvent<string>) => void) | null;
  onerror: ((event: Event) => void) | null;
}

/** What tabs send each other. */
type Shared = { readonly kind: 'message'; readonly data: string } | { readonly kind: 'lost' } | { readonly kind: 'hello' };

export class SharedEvents implements Events {
  onmessage: Events['onmessage'] = null;
  onerror: Events['onerror'] = null;
  private readonly tabs: BroadcastChannel;
  private newest: Shared | null = null; // the last thing that this tab read; null: another tab reads

  constructor(private readonly url: string) {
    this.tabs = new BroadcastChannel(url);
    this.tabs.onmessage = ({ data: shared }: MessageEvent<Shared>) => this.take(shared);
    this.tabs.postMessage({ kind: 'hello' } satisfies Shared);
    // A lock is held as long as its promise is pending. Some pages may not use locks, such as those of
    // a host that is neither this one nor encrypted.
    const untilClosed = new Promise<never>(() => undefined);
    const asked = (navigator.locks as LockManager | undefined)?.request(url, () => (this.read(), untilClosed));
    if (asked === undefined) this.read();
    else void asked.catch(() => this.read());
  }

  private read(): void {
    const events = new EventSource(this.url);
    events.onmessage = ({ data }: MessageEvent<string>) => this.share({ kind: 'message', data });
    events.onerror = () => this.share({ kind: 'lost' });
  }

  private share(shared: Shared): void {
    this.newest = shared;
    this.tabs.postMessage(shared);
    this.take(shared);
  }

  private take(shared: Shared): void {
    if (shared.kind === 'message') this.onmessage?.(new MessageEvent('message', { data: shared.data }));
    else if (shared.kind === 'lost') this.onerror?.(new Event('error'));
    else if (this.newest !== null) this.tabs.postMessage(this.newest);
  }
}
