// What a view shows instead of an answer: loading, empty, failed.

import type { ComponentChildren } from 'preact';
import type { Asked } from './use_question';

export function Loading({ what }: { readonly what: string }) {
  return (
    <p class="notice loading" role="status">
      <span class="spinner" aria-hidden="true" /> {what}
    </p>
  );
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="notice empty">
      <h3>{title}</h3>
      {children}
    </div>
  );
}

export function Failed({ message }: { readonly message: string }) {
  return (
    <p class="notice failed" role="alert">
      {message}
    </p>
  );
}

interface AnsweredProps<T> {
  readonly asked: Asked<T>;
  readonly what: string; // 'Adding up stacks…'
  readonly children: (answer: T) => ComponentChildren;
}

/** Shows the answer, dimmed while a newer one is loading, or the error. */
export function Answered<T>({ asked, what, children }: AnsweredProps<T>) {
  if (asked.failure !== '') return <Failed message={asked.failure} />;
  if (asked.answer === null) return asked.loading ? <Loading what={what} /> : null;
  return (
    <div class="answered" aria-busy={asked.loading}>
      {children(asked.answer)}
    </div>
  );
}
