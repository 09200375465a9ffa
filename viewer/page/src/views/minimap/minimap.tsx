import type { ViewProps } from '../view';

export function Minimap(props: ViewProps) {
  return <span hidden>{props.state.view}</span>;
}
