export type Json = Record<string, unknown>;

/** Whether a value is a JSON object: not an array and not null. */
export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Levels of lists and objects in a JSON text of somebody else. No prompt, schema or answer needs as many. */
export const MOST_LEVELS = 200;

/** Text is JSON, of more levels than walks over it may find on the stack. */
export class JsonLevelsError extends SyntaxError {
  override name = 'JsonLevelsError';
}

/** `JSON.parse` for texts of others. Throws SyntaxError, and of its kind JsonLevelsError. */
export function readJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (isDeeper(value, MOST_LEVELS)) throw new JsonLevelsError(`The JSON has more than ${MOST_LEVELS} levels.`);
  return value;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((inner) => isDeeper(inner, levels - 1));
  for (const name in value) if (isDeeper((value as Json)[name], levels - 1)) return true;
  return false;
}

/** Whether two JSON values are equal. The order of fields does not count, and a missing field equals undefined. */
export function sameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => sameJson(item, right[index]));
  }
  if (!isObject(left) || !isObject(right)) return false;
  return (
    Object.keys(left).every((key) => sameJson(left[key], right[key])) &&
    Object.keys(right).every((key) => Object.hasOwn(left, key) || sameJson(left[key], right[key]))
  );
}

/** An object with these fields of another one; a field that is undefined is left out. */
export function pick<T extends object, K extends keyof T>(object: T, names: readonly K[]): Pick<T, K> {
  const picked: Partial<T> = {};
  for (const name of names) if (object[name] !== undefined) picked[name] = object[name];
  return picked as Pick<T, K>;
}
