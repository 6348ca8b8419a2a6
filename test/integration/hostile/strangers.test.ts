import { afterAll, beforeAll, it } from 'vitest';
import { type Arena, compare, hammer, openArena, read } from './arena.ts';

const PATHS = ['/openapi.json', '/docs/swagger-ui-bundle.js', '/docs/api.md', '/livez', '/api/v1/offers', '/dashboard'];

let arena: Arena;

beforeAll(async () => {
  arena = await openArena();
});
afterAll(() => arena[Symbol.asyncDispose]());

it('fetch what needs no key, and refusals', async () => {
  await compare(
    'requests without a key',
    () => read(arena.honest),
    hammer(40, async (index, signal) =>
      (
        await fetch(`${arena.berth.url}${PATHS[index % PATHS.length]}`, {
          headers: { 'accept-encoding': 'br' },
          signal,
        })
      ).arrayBuffer(),
    ),
  );
});
