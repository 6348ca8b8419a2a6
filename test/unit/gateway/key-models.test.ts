import { afterAll, beforeAll, expect, it } from 'vitest';
import { CALLER, gatewayTo, post, type TestGateway } from '../../support/model-gateway.ts';
import type { ScriptedEngine } from '../../support/scripted-engine.ts';

const MESSAGES = [{ role: 'user', content: 'Say hello' }];
const BODIES = {
  'chat/completions': { messages: MESSAGES },
  responses: { input: 'Say hello' },
  messages: { messages: MESSAGES, max_tokens: 50 },
  'messages/count_tokens': { messages: MESSAGES },
} as const;
const PATHS = Object.keys(BODIES) as (keyof typeof BODIES)[];
const LIMITED = { ...CALLER, models: ['tiny-*', 'exact'] };

let gateway: TestGateway;
let engine: ScriptedEngine;
let close: () => Promise<void>;

beforeAll(async () => {
  const started = await gatewayTo({ engine: 'tgi', models: ['tiny', 'tiny-2', 'exact', 'exact-2'] });
  ({ gateway, close } = started);
  engine = started.engines[0] as ScriptedEngine;
});
afterAll(() => close());

it.each(PATHS)('%s: a key calls the models of its list alone', async (path) => {
  gateway.callAs(LIMITED);
  for (const model of ['tiny-2', 'exact'])
    expect((await post(gateway, path, { ...BODIES[path], model })).status).toBe(200);
  const before = engine.received.length;
  for (const model of ['tiny', 'exact-2', 'unknown']) {
    const refused = await post(gateway, path, { ...BODIES[path], model });
    expect(refused.status).toBe(404);
    const text = await refused.text();
    // A model that is not on the list is refused as one that does not exist, and no other is named.
    expect(text).toContain(`The model '${model}' does not exist or you do not have access to it.`);
    expect(text).toContain("Known models: 'exact', 'tiny-2'.");
  }
  expect(engine.received.length).toBe(before);
});

it('lists and shows the models of the list alone', async () => {
  gateway.callAs(LIMITED);
  const { data } = (await (await fetch(`${gateway.base}/v1/models`)).json()) as { data: { id: string }[] };
  expect(data.map(({ id }) => id)).toEqual(['exact', 'tiny-2']);
  expect((await fetch(`${gateway.base}/v1/models/tiny`)).status).toBe(404);
  gateway.callAs({ ...CALLER, models: ['*'] });
  expect((await fetch(`${gateway.base}/v1/models/tiny`)).status).toBe(200);
});

it('neither shows nor continues the answers of models that the key may no longer use', async () => {
  gateway.callAs(CALLER);
  const response = await post(gateway, 'responses', { model: 'tiny', input: 'Secret' });
  const { id } = (await response.json()) as { id: string };
  gateway.callAs(LIMITED);
  expect((await fetch(`${gateway.base}/v1/responses/${id}`)).status).toBe(404);
  const body = { model: 'exact', input: 'x', previous_response_id: id };
  expect(await (await post(gateway, 'responses', body)).json()).toMatchObject({
    error: { code: 'previous_response_not_found' },
  });
});
