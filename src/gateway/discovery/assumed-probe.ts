import type { ScaleSpec } from '../../resources/model-servers/scale.ts';
import type { Probe, ServerSpec } from './types.ts';

/** What a server without a replica is taken for: what the last one was, and the names that its Service states. */
export function assumedProbe(
  { engine = 'unknown', dialects = ['chat'], prefix = '' }: ServerSpec,
  { models }: ScaleSpec,
  last: Probe | undefined,
): Probe | undefined {
  const known = last?.models ?? [];
  const stated = models.filter((name) => known.every(({ id }) => id !== name)).map((id) => ({ id }));
  if (last === undefined && stated.length === 0) return undefined;
  const probe = last ?? { engine, prefix, dialects, models: [], countTokens: false, tokenize: false };
  return { ...probe, models: [...known, ...stated] };
}
