/** On a server that tenants share, no caller decides what the others get of it. */
import { afterEach, expect, it } from 'vitest';
import { formOf, FORM_TYPE, textPart } from '../../support/ambiguous-bodies.ts';
import { gatewayTo, gatewayToOwn, post } from '../../support/model-gateway.ts';
import { startEngine } from '../../support/scripted-engine.ts';

const ANSWER = { contentType: 'application/json', body: '{"choices":[],"data":[],"results":[]}' };
const PLAIN = { '/v1/completions': ANSWER, '/v1/embeddings': ANSWER, '/v1/audio/transcriptions': ANSWER };
const ENGINE = {
  engine: 'vllm',
  dialects: ['chat', 'responses', 'messages'],
  plain: PLAIN,
  countTokens: true,
} as const;
const SAID = [{ role: 'user', content: 'Hi' }];
const CALLS: readonly [path: string, body: object][] = [
  ['chat/completions', { messages: SAID }],
  ['responses', { input: 'Hi' }],
  ['messages', { max_tokens: 5, messages: SAID }],
  ['messages/count_tokens', { messages: SAID }],
  ['responses/input_tokens', { input: 'Hi' }],
  ['completions', { prompt: 'Hi' }],
  ['embeddings', { input: 'Hi' }],
];
const LOOP = '{% for a in range(10**9) %}{% endfor %}';
/** Each way to decide for the others, with the path that the refusal names. */
const WAYS: readonly [path: string, fields: object][] = [
  ['chat_template', { chat_template: LOOP }],
  ['chat_template_kwargs.chat_template', { chat_template_kwargs: { chat_template: LOOP } }],
  ['chat_template_kwargs.tokenize', { chat_template_kwargs: { enable_thinking: true, tokenize: true } }],
  ['custom_logit_processor', { custom_logit_processor: '{"callable":"8004"}' }],
  ['logits_processors', { logits_processors: ['os.system'] }],
  ['prompt_embeds', { prompt_embeds: 'gAJ9cQA=' }],
  ['input_embeds', { input_embeds: [[0.5]] }],
  ['image_embeds', { content: [{ type: 'image_embeds', image_embeds: 'gAJ9cQA=' }] }],
  ['priority', { priority: -1000 }],
  ['data_parallel_rank', { data_parallel_rank: 0 }],
  ['session_params', { session_params: { id: 'of another' } }],
  ['rid', { rid: 'of another' }],
  ['id_slot', { id_slot: 0 }],
];
/** What would stop an engine for everybody, or have it connect: for nobody, also at a server of the tenant alone. */
const OF_PROXIES: readonly [path: string, fields: object][] = [
  ['vllm_xargs.kv_transfer_params', { vllm_xargs: { kv_transfer_params: 'no object' } }],
  ['vllm_xargs.ec_transfer_params', { vllm_xargs: { ec_transfer_params: ['no object'] } }],
];

const running: { close: () => Promise<void> }[] = [];
afterEach(async () => {
  for (const each of running.splice(0)) await each.close();
});

it.each([...WAYS, ...OF_PROXIES])('%s is refused by name in every dialect and route', async (path, fields) => {
  const started = await gatewayTo(ENGINE);
  running.push(started);
  const { gateway, engines } = started;
  for (const [route, body] of CALLS) {
    const response = await post(gateway, route, { model: 'tiny', ...body, ...fields });
    expect([route, response.status]).toEqual([route, 400]);
    expect(await response.text()).toContain(`'${path}'`);
  }
  expect(engines[0]?.received).toEqual([]);
});

it.each(['lora', 'vllm_xargs[kv_transfer_params]', 'priority', 'chat_template'])('%s in a form, too', async (name) => {
  const started = await gatewayTo(ENGINE);
  running.push(started);
  const body = formOf(textPart('model', 'tiny'), textPart(name, 'a'));
  const init = { headers: { 'content-type': FORM_TYPE } };
  const response = await post(started.gateway, 'audio/transcriptions', body, init);
  expect([response.status, await response.text()]).toEqual([
    400,
    expect.stringContaining(name.replace(/^.*\[|\]$/g, '')),
  ]);
  expect(started.engines[0]?.received).toEqual([]);
});

it('a tenant decides for a server of its own, but not as a proxy of the operator', async () => {
  const started = await gatewayToOwn(ENGINE);
  running.push(started);
  const chat = (fields: object) =>
    post(started.gateway, 'chat/completions', { model: 'tiny', messages: SAID, ...fields });
  for (const [path, fields] of WAYS) expect([path, (await chat(fields)).status]).toEqual([path, 200]);
  for (const [path, fields] of OF_PROXIES) expect([path, (await chat(fields)).status]).toEqual([path, 400]);
});

it.each(['responses', 'responses/input_tokens'])(
  'what was stored of a call to a server of its own is refused, too: %s',
  async (route) => {
    const responses = { engine: 'unknown', dialects: ['responses'] } as const;
    const started = await gatewayToOwn(responses);
    const shared = await startEngine({ ...responses, models: ['all'] });
    running.push(started, shared);
    const { gateway, engines } = started;
    gateway.cluster.serve({ name: 'of-all', ports: [shared.port] });
    await gateway.ready('all');
    const content = [{ type: 'image_embeds', image_embeds: 'gAJ9cQA=' }];
    const first = await post(gateway, 'responses', { model: 'tiny', input: [{ role: 'user', content }] });
    const { id } = (await first.json()) as { id: string };
    const next = { input: 'x', previous_response_id: id };
    const own = await post(gateway, 'responses', { model: 'tiny', ...next });
    expect([first.status, own.status]).toEqual([200, 200]);
    expect(JSON.stringify(engines[0]?.received[1]?.body)).toContain('gAJ9cQA=');
    const refused = await post(gateway, route, { model: 'all', ...next });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("'image_embeds'")]);
    expect(shared.received).toEqual([]);
  },
);

it('what a template or an extension gets otherwise goes through', async () => {
  const started = await gatewayTo(ENGINE);
  running.push(started);
  const fields = { chat_template_kwargs: { enable_thinking: false }, vllm_xargs: { mode: 'a' }, priority: null };
  const response = await post(started.gateway, 'chat/completions', { model: 'tiny', messages: SAID, ...fields });
  expect(response.status).toBe(200);
  expect(started.engines[0]?.received[0]?.body).toMatchObject(fields);
});
