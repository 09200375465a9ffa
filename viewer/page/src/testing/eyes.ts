// Measures how different two colours look with normal and with deficient colour vision. Used by the
// tests of colours.
//
// Missing cones: Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of
// Color Vision Deficiency", IEEE TVCG 15(6), 2009; its matrices of severity 1.0, over linear sRGB.

type Triple = readonly [number, number, number];

export const EYES = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
} as const satisfies Readonly<Record<string, readonly [Triple, Triple, Triple]>>;

export type Eye = keyof typeof EYES;

/**
 * Returns a '#rrggbb' as an eye sees it: lightness (0 to 100), green to red, blue to yellow
 * (CIELAB, D65 white).
 */
export function seenBy(eye: Eye, color: string): Triple {
  const light = times(EYES[eye], linear(color)).map((value) => Math.min(1, Math.max(0, value)));
  const [r, g, b] = light as unknown as Triple;
  const x = root((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
  const y = root(0.2126729 * r + 0.7151522 * g + 0.072175 * b);
  const z = root((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/**
 * Returns the perceived distance of two colours (CIE76): 2 is hardly visible side by side, 10 is
 * visible at a glance.
 */
export function distance(eye: Eye, a: string, b: string): number {
  const [p, q] = [seenBy(eye, a), seenBy(eye, b)];
  return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

function times(matrix: readonly Triple[], [r, g, b]: Triple): number[] {
  return matrix.map((row) => row[0] * r + row[1] * g + row[2] * b);
}

function linear(color: string): Triple {
  const of = (at: number): number => {
    const value = parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [of(1), of(3), of(5)];
}

function root(value: number): number {
  return value > 216 / 24389 ? Math.cbrt(value) : ((24389 / 27) * value + 16) / 116;
}
