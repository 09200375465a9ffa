// Reads numbers as viewer/html/varint_columns.h writes them: LEB128, below 2^53; signed ones with
// zigzag encoding.

/** Reads `count` numbers. Throws a RangeError if the column ends early. */
export function readVarints(bytes: Uint8Array, count: number): Float64Array {
  const out = new Float64Array(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = bytes[at++];
      if (byte === undefined) throw new RangeError('a column ends early');
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
      scale *= 128;
    }
    out[i] = value;
  }
  return out;
}

export function unzigzag(value: number): number {
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}

/** Reads differences and returns their running sums. */
export function readDeltas(bytes: Uint8Array, count: number): Float64Array {
  const out = readVarints(bytes, count);
  let sum = 0;
  for (let i = 0; i < count; i++) out[i] = sum += unzigzag(out[i]!);
  return out;
}
