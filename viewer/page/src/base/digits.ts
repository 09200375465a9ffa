// Rounds numbers for people as the command line does (analysis/text.cc).

/** Formats three significant digits of a value below 1000: 999, 12.3, 1.00. */
export function threeDigits(value: number): string {
  return toDecimals(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

/** Rounds ties to even as printf does: 1.125 becomes 1.12, but toFixed gives 1.13. */
function toDecimals(value: number, decimals: number): string {
  const scale = 10 ** decimals;
  const scaled = value * scale;
  const below = Math.floor(scaled);
  const isBetween = scaled - below === 0.5 && scaled / scale === value;
  if (!isBetween) return value.toFixed(decimals);
  return ((below % 2 === 0 ? below : below + 1) / scale).toFixed(decimals);
}
