// Names of the protocol as people read them.

/** 'optimizer_state' is 'optimizer state'. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}
