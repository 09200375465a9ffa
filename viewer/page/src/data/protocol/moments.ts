// Moments, and the version of the protocol.

export const PROTOCOL_VERSION = 1;

export type Axis = 'time' | 'event' | 'step';
export type Layout = 'stacked' | 'address';

/** The event number of a block that was never freed, and the row number that means no block. */
export const NEVER = 0xffffffff;
export const NO_ROW = 0xffffffff;
