// Reads JSON whose shape is known from its schema, not from the type system. A missing value or one
// of another type reads as empty, so that a page can be drawn from the values that are present.

export class Json {
  constructor(readonly value: unknown) {}

  at(key: string): Json {
    const { value } = this;
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return new Json(isObject ? (value as Readonly<Record<string, unknown>>)[key] : undefined);
  }

  isNull(): boolean {
    return this.value === null || this.value === undefined;
  }

  /** Returns 0 if there is no such number. */
  number(key: string): number {
    return this.numberOrNull(key) ?? 0;
  }

  numberOrNull(key: string): number | null {
    const { value } = this.at(key);
    return typeof value === 'number' && Number.isFinite(value) ? value : null;
  }

  /** Returns '' if there is no such text. */
  text(key: string): string {
    const { value } = this.at(key);
    return typeof value === 'string' ? value : '';
  }

  flag(key: string): boolean {
    return this.at(key).value === true;
  }

  list(key: string): readonly Json[] {
    const { value } = this.at(key);
    return Array.isArray(value) ? value.map((each: unknown) => new Json(each)) : [];
  }

  texts(key: string): readonly string[] {
    return this.list(key).flatMap(({ value }) => (typeof value === 'string' ? [value] : []));
  }
}
