import { expect, it } from 'vitest';
import { hopByHop } from '../../../src/lib/relay-headers.ts';

it.each([
  ['the usual ones', undefined, ['connection', 'keep-alive', 'proxy-authorization', 'te', 'trailer', 'upgrade'], true],
  ['what the message is', undefined, ['transfer-encoding'], true],
  ['what is for the end', undefined, ['content-length', 'content-type', 'cookie', 'x-hop', 'expect'], false],
  ['a name in Connection', 'close, X-Hop', ['x-hop', 'close', 'upgrade'], true],
  ['no name that only begins so', 'x-hop', ['x-hop-2', 'x-ho'], false],
  ['names in several Connection headers', ['x-one', 'Keep-Alive , x-two'], ['x-one', 'x-two', 'keep-alive'], true],
  ['an empty Connection', ' , ', ['content-type'], false],
])('%s', (_what, connection, names, isHop) => {
  const hops = hopByHop(connection);
  for (const name of names) expect([name, hops.has(name)]).toEqual([name, isHop]);
});
