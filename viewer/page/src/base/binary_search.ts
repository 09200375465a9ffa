// Search in sorted arrays.

export interface Numbers {
  readonly length: number;
  readonly [index: number]: number;
}

/** Returns the first index in [from, to) whose value is >= `value`, or `to` if there is none. */
export function lowerBound(values: Numbers, value: number, from = 0, to = values.length): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the first index in [from, to) whose value is > `value`, or `to` if there is none. */
export function upperBound(values: Numbers, value: number, from = 0, to = values.length): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
