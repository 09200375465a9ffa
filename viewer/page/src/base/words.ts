// Formats names of the protocol for people.

/** Returns 'optimizer state' for 'optimizer_state'. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}
