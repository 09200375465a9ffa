// Search in sorted arrays.

export interface Numbers {
  readonly length: number;
  readonly [index: number]: number;
}

/** First index whose value is >= `value`; `length` where none is. */
export function lowerBound(values: Numbers, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** First index whose value is > `value`; `length` where none is. */
export function upperBound(values: Numbers, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
