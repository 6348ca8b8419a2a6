import type { Example } from '../../../src/http/interface/route.ts';
import { OPERATIONS } from '../../../src/http/server/table.ts';

/** The examples of an operation by their names. Throws when it has none. */
export function examplesOf(id: string): [string, Example][] {
  const examples = Object.entries(OPERATIONS.find((operation) => operation.id === id)?.request?.examples ?? {});
  if (examples.length === 0) throw new Error(`The operation ${id} has no examples.`);
  return examples;
}
