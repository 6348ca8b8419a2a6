import type { ScaleSpec } from '../../resources/model-servers/scale.ts';
import { PLAIN_NAMES, PLAIN_ROUTES, type PlainPaths } from '../plain/routes.ts';
import type { Probe, ServerSpec } from './types.ts';

/** Nobody knows what a server has that was never there. The first call of any kind may find out. */
const EVERY_PATH: PlainPaths = Object.fromEntries(PLAIN_NAMES.map((name) => [name, PLAIN_ROUTES[name].upstream[0]]));

/** What a server without a replica is taken for: what the last one was, and the names that its Service states. */
export function assumedProbe(
  { engine = 'unknown', dialects = ['chat'], prefix = '' }: ServerSpec,
  { models }: ScaleSpec,
  last: Probe | undefined,
): Probe | undefined {
  const known = last?.models ?? [];
  const stated = models.filter((name) => known.every(({ id }) => id !== name)).map((id) => ({ id }));
  if (last === undefined && stated.length === 0) return undefined;
  const probe = last ?? {
    engine,
    prefix,
    dialects,
    models: [],
    plainPaths: EVERY_PATH,
    countTokens: false,
    tokenize: false,
  };
  return { ...probe, models: [...known, ...stated] };
}
