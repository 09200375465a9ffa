// A tree that is drawn on a canvas and exposed as tree items. The canvas shows everything. The
// items, for screen readers and tests, are only those around the active one, so that the page never
// has an element per frame or block.

import type { ComponentChildren } from 'preact';

export interface TreeItem {
  readonly id: string; // unique on the page
  readonly level: number; // from 1
  readonly label: string;
  readonly expanded: boolean | undefined; // undefined: nothing below it
}

export interface CanvasTreeProps {
  readonly label: string;
  readonly class?: string;
  readonly items: readonly TreeItem[];
  readonly active: string; // id of one of the items
  /** Returns whether the tree uses the key. */
  readonly onKey: (event: KeyboardEvent) => boolean;
  readonly children: ComponentChildren; // the canvas
}

export function CanvasTree(props: CanvasTreeProps) {
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || !props.onKey(event)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class={`canvas-tree ${props.class ?? ''}`}
      role="tree"
      tabIndex={0}
      aria-label={props.label}
      aria-activedescendant={props.active}
      onKeyDown={onKeyDown}
    >
      {props.children}
      <div class="visually-hidden" role="group">
        {props.items.map((item) => (
          <div
            key={item.id}
            id={item.id}
            role="treeitem"
            aria-level={item.level}
            aria-expanded={item.expanded}
            aria-selected={item.id === props.active}
          >
            {item.label}
          </div>
        ))}
      </div>
    </div>
  );
}
