import type { ViewProps } from '../view';

export function Details(props: ViewProps) {
  return <span hidden>{props.state.view}</span>;
}
