/**
 * The one text of a value in a URI. Two texts that give a handler the same value would let a client choose the one that a
 * rule, a subscription or a cache does not know. The compiled part knows the texts of its own types; a schema's output is
 * compared with what the client sent.
 */

/** The texts of a value, the usual one first; `undefined` if it has none of its own. */
export function spellings(value: unknown): readonly string[] | undefined {
  if (typeof value === 'string') return [value];
  if (typeof value === 'number') return [String(value)]; // -0 is 0
  if (typeof value === 'bigint' || typeof value === 'boolean') return [String(value)];
  if (value instanceof Date) return dates(value);
  if (value instanceof String || value instanceof Number || value instanceof Boolean) return spellings(value.valueOf());
  if (typeof value !== 'object' || value === null) return undefined;
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON !== 'function') return undefined;
  const plain: unknown = toJSON.call(value);
  return typeof plain === 'object' ? undefined : spellings(plain);
}

/** A day, then a time in UTC as the type `date-time` has it, then as `toISOString` has it. */
function dates(value: Date): string[] {
  if (Number.isNaN(value.getTime())) return [];
  const full = value.toISOString();
  const short = full.replace(/\.(\d*?)0*Z$/, (_, digits: string) => (digits === '' ? 'Z' : `.${digits}Z`));
  const day = full.endsWith('T00:00:00.000Z') ? [full.slice(0, -'T00:00:00.000Z'.length)] : [];
  return [...day, short, full];
}
