import { expect, it } from 'vitest';
import { traceOf } from '../../../src/gateway/trace.ts';
import { gatewayTo, post } from '../../support/model-gateway.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const GOOD = `00-${TRACE}-${PARENT}-01`;

it.each([GOOD, `00-${TRACE}-${PARENT}-00`, `cc-${TRACE}-${PARENT}-01`, `cc-${TRACE}-${PARENT}-01-what-will-be`])(
  'passes on %s',
  (traceparent) => {
    expect(traceOf({ traceparent })).toEqual(['traceparent', traceparent]);
  },
);

// https://github.com/w3c/trace-context, test/test.py: what a receiver must not go on with
it.each([
  undefined,
  '',
  'x',
  `ff-${TRACE}-${PARENT}-01`,
  `00-${TRACE}-${PARENT}-01-more`,
  `00-${TRACE}-${PARENT}-01-`,
  `00-${'0'.repeat(32)}-${PARENT}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE.toUpperCase()}-${PARENT}-01`,
  `00-${TRACE}-${PARENT}-1`,
  `.0-${TRACE}-${PARENT}-01`,
  `00-${TRACE}-${PARENT}`,
  `cc-${TRACE}-${PARENT}-01.what`,
  `cc-${TRACE}-${PARENT}-01-${'x'.repeat(256)}`,
])('passes on nothing of %s', (traceparent) => {
  expect(traceOf({ ...(traceparent !== undefined && { traceparent }), tracestate: 'a=1' })).toEqual([]);
});

it.each([
  ['rojo=1,congo=2', true],
  ['', false],
  ['a'.repeat(513), false],
  ['line\nbreak', false],
])('passes on the state %j: %s', (tracestate, expected) => {
  expect(traceOf({ traceparent: GOOD, tracestate }).includes('tracestate')).toBe(expected);
});

it('reaches the engine, and nothing is made up', async () => {
  const { gateway, engines, close } = await gatewayTo({});
  try {
    const body = { model: 'tiny', messages: [{ role: 'user', content: 'x' }] };
    const headers = { traceparent: GOOD, tracestate: 'rojo=1' };
    await (await post(gateway, 'chat/completions', body, { headers })).text();
    await (await post(gateway, 'chat/completions', body)).text();
    const [first, second] = engines[0]?.received ?? [];
    expect(first?.headers).toMatchObject(headers);
    expect(second?.headers).not.toHaveProperty('traceparent');
  } finally {
    await close();
  }
});
