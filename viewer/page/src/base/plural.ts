// '1 block', '2 blocks', '50,000,000 blocks'.

import { formatCount } from './format_bytes';

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
