/** Addresses that a caller names reach no model server, unless the operator allowed their host. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type DialectError, remoteMedia } from '../../../src/gateway/dialects/index.ts';
import { mayFetch } from '../../../src/gateway/find-model.ts';
import { cpuTime } from '../../support/cpu-time.ts';
import { formOf, FORM_TYPE, textPart } from '../../support/ambiguous-bodies.ts';
import { gatewayTo, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { startEngine, type EngineOptions, type ScriptedEngine } from '../../support/scripted-engine.ts';

const JSON_ANSWER = { contentType: 'application/json', body: '{"choices":[],"data":[],"results":[],"usage":{}}' };
const PLAIN = Object.fromEntries(
  ['completions', 'embeddings', 'rerank', 'audio/transcriptions'].map((path) => [`/v1/${path}`, JSON_ANSWER]),
);
const ADDRESS = 'http://169.254.169.254/latest/meta-data/iam/';

type Body = Record<string, unknown>;
const user = (...content: Body[]): Body => ({ messages: [{ role: 'user', content }], max_tokens: 5 });
const item = (...content: Body[]): Body => ({ input: [{ type: 'message', role: 'user', content }] });
const toolResult = (...content: Body[]): Body => ({
  max_tokens: 5,
  messages: [
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content }] },
  ],
});

/** Each way to name an address, by path, with a body of it. */
const WAYS: readonly [path: string, where: string, body: (url: string) => Body][] = [
  [
    'chat/completions',
    'messages[0].content[0].image_url.url',
    (url) => user({ type: 'image_url', image_url: { url } }),
  ],
  ['chat/completions', 'messages[0].content[0].image_url', (url) => user({ type: 'image_url', image_url: url })],
  [
    'chat/completions',
    'messages[0].content[0].video_url.url',
    (url) => user({ type: 'video_url', video_url: { url } }),
  ],
  [
    'chat/completions',
    'messages[0].content[0].audio_url.url',
    (url) => user({ type: 'audio_url', audio_url: { url } }),
  ],
  ['chat/completions', 'messages[0].content[0].image', (url) => user({ type: 'image', image: url })],
  [
    'chat/completions',
    'messages[0].content[0].images[1]',
    (url) => user({ images: ['data:image/png;base64,AA==', url] }),
  ],
  ['chat/completions', 'messages[0].content[0].video[0]', (url) => user({ type: 'video', video: [url] })],
  [
    'chat/completions',
    'messages[0].content[0].image_url',
    (url) => user({ type: 'text', text: '', uuid: '1', image_url: url }),
  ],
  ['chat/completions', 'messages[0].content[0].doc_uri', (url) => user({ type: 'doc', doc_uri: url })],
  [
    'chat/completions',
    'messages[0].content[0].input_audio.data',
    (url) => user({ type: 'input_audio', input_audio: { data: url, format: 'wav' } }),
  ],
  [
    'chat/completions',
    'messages[0].content[0].file.file_data',
    (url) => user({ type: 'file', file: { file_data: url } }),
  ],
  [
    'chat/completions',
    'tools[0].server_url',
    (url) => ({ ...user({ type: 'text', text: 'a' }), tools: [{ type: 'mcp', server_url: url }] }),
  ],
  ['chat/completions', 'callback_url', (url) => ({ ...user({ type: 'text', text: 'a' }), callback_url: url })],
  ['responses', 'input[0].content[0].image_url', (url) => item({ type: 'input_image', image_url: url })],
  [
    'responses',
    'input[0].content[0].image_url',
    (url) => ({ type: 'tool_use', ...item({ type: 'input_image', image_url: url }) }),
  ],
  ['embeddings', 'input[0].image', (url) => ({ type: 'mcp_tool_use', input: [{ image: url }] })],
  ['responses', 'input[0].content[0].file_url', (url) => item({ type: 'input_file', file_url: url })],
  [
    'responses',
    'input[0].output.image_url',
    (url) => ({
      input: [{ type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', image_url: url } }],
    }),
  ],
  [
    'responses',
    'input[0].output[0].image_url',
    (url) => ({
      input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: url }] }],
    }),
  ],
  ['messages', 'messages[0].content[0].source.url', (url) => user({ type: 'image', source: { type: 'url', url } })],
  ['messages', 'messages[0].content[0].source.url', (url) => user({ type: 'document', source: { type: 'url', url } })],
  [
    'messages',
    'messages[1].content[0].content[0].source.url',
    (url) => toolResult({ type: 'image', source: { type: 'url', url } }),
  ],
  [
    'messages',
    'mcp_servers[0].url',
    (url) => ({ ...user({ type: 'text', text: 'a' }), mcp_servers: [{ type: 'url', url }] }),
  ],
  [
    'messages/count_tokens',
    'messages[0].content[0].source.url',
    (url) => user({ type: 'image', source: { type: 'url', url } }),
  ],
  ['responses/input_tokens', 'input[0].content[0].image_url', (url) => item({ type: 'input_image', image_url: url })],
  ['completions', 'image_url', (url) => ({ prompt: 'a', image_url: url })],
  ['embeddings', 'input[0].image', (url) => ({ input: [{ text: 'a', image: url }] })],
  ['embeddings', 'messages[0].content[0].image_url.url', (url) => user({ type: 'image_url', image_url: { url } })],
  ['embeddings', 'input[0]', (url) => ({ input: [url], modality: 'image' })],
  [
    'rerank',
    'documents[0].content[0].image_url.url',
    (url) => ({ query: 'a', documents: [{ content: [{ type: 'image_url', image_url: { url } }] }] }),
  ],
  ['rerank', 'documents[0].url', (url) => ({ query: 'a', documents: [{ url }] })],
];

const ADDRESSES = [
  ADDRESS,
  'http://kubernetes.default.svc/',
  'http://llama.ml-platform.svc.cluster.local/v1/models',
  'file:///etc/passwd',
  'FILE:/etc/passwd',
  'http://localhost:8000/',
  'http://2852039166/',
  'http://0xa9.0xfe.0xa9.0xfe/',
  'http://0251.0376.0251.0376/',
  'http://[::ffff:169.254.169.254]/',
  'http://[::1]/',
  'gopher://metadata.google.internal/',
  ' http://169.254.169.254/',
  'ht\ttp://169.254.169.254/',
];

describe('an address in a body', () => {
  let gateway: TestGateway;
  let engine: ScriptedEngine;
  let close: () => Promise<void>;
  beforeAll(async () => {
    const started = await gatewayTo({
      engine: 'unknown',
      dialects: ['chat', 'responses', 'messages'],
      plain: PLAIN,
      countTokens: true,
    });
    ({ gateway, close } = started);
    engine = started.engines[0] as ScriptedEngine;
  });
  afterAll(() => close());

  it.each(WAYS)('%s, %s: is refused by name and reaches no engine', async (path, where, body) => {
    for (const url of ADDRESSES) {
      const response = await post(gateway, path, { model: 'tiny', ...body(url) });
      expect([response.status, url]).toEqual([400, url]);
      const { error } = (await response.json()) as { error: { message: string } };
      expect(error.message).toContain(`'${where}' is an address`);
    }
    const page = await post(gateway, path, { model: 'tiny', ...body('https://images.example.com/a.png') });
    expect([page.status, await page.text()]).toEqual([
      400,
      expect.stringContaining("servers of the model 'tiny' fetch nothing"),
    ]);
    expect(engine.received).toEqual([]);
  });

  it.each(['relative.png', '/etc/secret.png', 'AAAA', '//169.254.169.254/a.png', 'DATA:image/png;base64,AA=='])(
    'is also what some engines take for a file or another scheme: %s',
    async (url) => {
      const response = await post(gateway, 'chat/completions', {
        model: 'tiny',
        ...user({ type: 'image_url', image_url: { url } }),
      });
      expect(response.status).toBe(400);
      expect(engine.received).toEqual([]);
    },
  );

  it.each(['url', 'file_url', 'image', 'images[]', 'file[url]', 'image[0][src]'])(
    'in a field %s of a form',
    async (name) => {
      const body = formOf(textPart('model', 'tiny'), textPart(name, ADDRESS));
      const headers = { 'content-type': FORM_TYPE };
      expect((await post(gateway, 'audio/transcriptions', body, { headers })).status).toBe(400);
      expect(engine.received).toEqual([]);
    },
  );

  it.each([
    'kv_transfer_params',
    'ec_transfer_params',
    'bootstrap_host',
    'bootstrap_port',
    'bootstrap_room',
    'lora_path',
    'lora',
  ])('or a part of one, and an adapter, in %s', async (name) => {
    for (const path of ['chat/completions', 'messages', 'completions']) {
      const body = { model: 'tiny', prompt: 'a', ...user({ type: 'text', text: 'a' }), [name]: '10.0.0.1' };
      const response = await post(gateway, path, body);
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(name)]);
    }
    expect(engine.received).toEqual([]);
  });
});

describe('what is no address to fetch', () => {
  it('passes: data, texts, arguments, schemas and quotations', async () => {
    const { gateway, engines, close } = await gatewayTo({
      engine: 'unknown',
      dialects: ['chat', 'responses', 'messages'],
      plain: PLAIN,
    });
    const url = 'http://localhost/a';
    const bodies: [string, Body][] = [
      [
        'chat/completions',
        user({ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }, { type: 'text', text: url }),
      ],
      [
        'chat/completions',
        {
          ...user({ type: 'text', text: 'a' }),
          tools: [
            {
              type: 'function',
              function: { name: 'f', parameters: { properties: { url: { default: url } }, image_url: url } },
            },
          ],
        },
      ],
      [
        'messages',
        {
          max_tokens: 5,
          messages: [
            {
              role: 'assistant',
              content: [
                { type: 'tool_use', id: 'c', name: 'f', input: { url } },
                { type: 'text', text: 'a', citations: [{ type: 'web_search_result_location', url }] },
              ],
            },
            {
              role: 'user',
              content: [
                {
                  type: 'tool_result',
                  tool_use_id: 'c',
                  content: [{ type: 'search_result', source: url, title: 't', content: [{ type: 'text', text: 'a' }] }],
                },
              ],
            },
          ],
        },
      ],
      ['messages', user({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'note: a' } })],
      [
        'responses',
        {
          input: [
            {
              type: 'message',
              role: 'assistant',
              content: [{ type: 'output_text', text: 'a', annotations: [{ type: 'url_citation', url }] }],
            },
            { type: 'web_search_call', id: 'w', action: { type: 'open_page', url } },
            { role: 'user', content: url },
          ],
        },
      ],
      ['completions', { prompt: url }],
      ['embeddings', { input: [url, 'a'], modality: 'text' }],
      ['rerank', { query: url, documents: [url] }],
    ];
    for (const [path, body] of bodies)
      expect([path, (await post(gateway, path, { model: 'tiny', ...body })).status]).toEqual([path, 200]);
    expect(engines[0]?.received).toHaveLength(bodies.length);
    await close();
  });
});

describe('hosts that the operator allows', () => {
  const running: { close: () => Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of running.splice(0).toReversed()) await each.close();
  });

  async function start(hosts: Record<string, string | undefined>, options: EngineOptions = {}) {
    const gateway = await startGateway();
    running.push(gateway);
    const engines: ScriptedEngine[] = [];
    for (const [name, allowed] of Object.entries(hosts)) {
      const engine = await startEngine(options);
      running.push(engine);
      engines.push(engine);
      serve(gateway, name, engine, allowed);
    }
    await gateway.ready('tiny', engines.length);
    return { gateway, engines };
  }

  const serve = (gateway: TestGateway, name: string, { port }: ScriptedEngine, hosts?: string) =>
    gateway.cluster.serve({
      name,
      ports: [port],
      annotations: hosts === undefined ? {} : { 'berth.dev/model-media-hosts': hosts },
    });
  const ask = (gateway: TestGateway, url: string) =>
    post(gateway, 'chat/completions', { model: 'tiny', ...user({ type: 'image_url', image_url: { url } }) });

  it('are fetched from, in their plain spelling alone', async () => {
    const { gateway, engines } = await start({ a: 'images.example.com, *.CDN.example.com' });
    const allowed = [
      'https://images.example.com/a.png?b=c@d',
      'http://images.example.com',
      'https://a.b.cdn.example.com/',
    ];
    for (const url of allowed) expect([url, (await ask(gateway, url)).status]).toEqual([url, 200]);
    const refused = [
      'https://example.com/',
      'https://cdn.example.com/',
      'https://ximages.example.com/',
      'https://images.example.com.evil.org/',
      'https://images.example.com./',
      'https://images.example.com:8080/',
      'https://images.example.com:443/',
      'https://images.example.com@evil.org/',
      'https://evil.org\\@images.example.com/',
      'https://images.example.com\\@evil.org/',
      'https://evil.org#@images.example.com/',
      'https://evil.org?.cdn.example.com/',
      'https://images.example.com?a',
      'https://IMAGES.example.com/',
      'HTTPS://images.example.com/',
      'https:images.example.com/',
      'https:/images.example.com/',
      'https:///images.example.com/',
      'https://images.example.com/\ta',
      'https://images.exa\nmple.com/',
      ' https://images.example.com/',
      'https://images.example.com/ a',
      'https://images%2eexample.com/',
      'https://images。example.com/',
      'https://xn--images-.example.com/',
      'ftp://images.example.com/',
      'file://images.example.com/etc/passwd',
      `https://images.example.com/${'a'.repeat(2048)}`,
    ];
    for (const url of refused) expect([url, (await ask(gateway, url)).status]).toEqual([url, 400]);
    expect(engines[0]?.received).toHaveLength(allowed.length);
    expect(await (await ask(gateway, 'https://evil.org/')).text()).toContain(
      "fetch only from 'images.example.com', '*.cdn.example.com'",
    );
  });

  it.each([
    'localhost',
    'kubernetes.default.svc',
    'a.svc.cluster.local',
    '*.svc.corp.example',
    '*.local',
    'metadata.google.internal',
    '127.0.0.1',
    '0x7f.1',
    '[::1]',
    '*',
    'com',
    'a.example.com.',
    'https://a.example.com',
    'a.example.com:80',
  ])('are none of the cluster or by address: %s', async (entry) => {
    const { gateway, engines } = await start({ a: `ok.example.com,${entry}` });
    for (const url of [`http://${entry}/`, `http://${entry.replace('*', 'a')}/`])
      expect((await ask(gateway, url)).status).toBe(400);
    expect((await ask(gateway, 'http://ok.example.com/')).status).toBe(200);
    expect(engines[0]?.received).toHaveLength(1);
  });

  it('are those of the server that the call goes to', async () => {
    const { gateway, engines } = await start({ closed: undefined, open: 'images.example.com' });
    for (let count = 0; count < 4; count += 1)
      expect((await ask(gateway, 'https://images.example.com/a')).status).toBe(200);
    expect(engines.map(({ received }) => received.length)).toEqual([0, 4]);
    engines[1]?.behave({ kind: 'status', status: 500 });
    expect((await ask(gateway, 'https://images.example.com/a')).status).toBeGreaterThanOrEqual(500);
    expect(engines[0]?.received).toEqual([]);
  });

  it('count anew when a stored conversation goes on, at another model or after the operator took them away', async () => {
    const { gateway, engines } = await start({ a: 'images.example.com' });
    const other = await startEngine({ models: ['other'] });
    running.push(other);
    serve(gateway, 'other', other);
    await gateway.ready('other');
    const url = 'https://images.example.com/a';
    const first = await post(gateway, 'responses', { model: 'tiny', ...item({ type: 'input_image', image_url: url }) });
    const { id } = (await first.json()) as { id: string };
    const goOn = (model: string) => post(gateway, 'responses', { model, input: 'And?', previous_response_id: id });
    expect((await goOn('tiny')).status).toBe(200);
    const refused = await goOn('other');
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('previous_response_id')]);
    if (engines[0] !== undefined) serve(gateway, 'a', engines[0]);
    await expect.poll(async () => (await ask(gateway, url)).status).toBe(400);
    expect((await goOn('tiny')).status).toBe(400);
    expect(other.received).toEqual([]);
  });
});

describe('as many media as a body may have', () => {
  const MANY = 120_000;
  const images = (count: number, urlOf: (index: number) => string) =>
    user(...Array.from({ length: count }, (_, at) => ({ type: 'image_url', image_url: { url: urlOf(at) } })));

  it.each<[what: string, url: (index: number) => string, expected: string]>([
    ['addresses of one host', (at) => `https://images.example.com/${at}`, '2048 media'],
    ['data', () => 'data:image/png;base64,AA==', '2048 media'],
    ['addresses of as many hosts', (at) => `https://h${at}.example.com/`, '100 hosts'],
  ])('are refused by number, in little time: %s', async (_what, urlOf, expected) => {
    const body = images(MANY, urlOf);
    let error: unknown;
    const spent = await cpuTime(() => {
      try {
        remoteMedia(body);
      } catch (caught) {
        error = caught;
      }
    });
    expect(error).toMatchObject({ status: 400, message: expect.stringContaining(expected) as string });
    expect((error as DialectError).param).toMatch(/^messages\[0\]\.content\[\d+\]\.image_url\.url$/);
    expect(spent).toBeLessThan(500);
    expect(remoteMedia(images(100, urlOf)).length).toBeLessThanOrEqual(100);
  });

  it('are held against the hosts of a server once, whatever its number of endpoints', () => {
    const media = remoteMedia(images(100, (at) => `https://h${at}.example.com/`));
    let looks = 0;
    const hosts = new Proxy(['*.example.com'], {
      get(list, name, own) {
        if (name === 'some') looks += 1;
        return Reflect.get(list, name, own) as unknown;
      },
    });
    for (let turn = 0; turn < 1000; turn += 1) expect(mayFetch(hosts, media)).toBe(true);
    expect(looks).toBe(100);
  });
});

describe('Text Generation Inference', () => {
  it.each([
    ['a text', [{ type: 'text', text: `see ![](${ADDRESS})` }]],
    [
      'texts that it joins',
      [
        { type: 'text', text: 'see ![]' },
        { type: 'text', text: `(${ADDRESS})` },
      ],
    ],
    ['the address of an image', [{ type: 'image_url', image_url: { url: `data:a)![](${ADDRESS}` } }]],
  ])('is asked for nothing that it would fetch: %s', async (_name, content) => {
    const { gateway, engines, close } = await gatewayTo({ engine: 'tgi', plain: PLAIN });
    for (const path of ['chat/completions', 'messages'])
      if (path === 'chat/completions' || content[0]?.type === 'text')
        expect(
          (await post(gateway, path, { model: 'tiny', max_tokens: 5, messages: [{ role: 'user', content }] })).status,
        ).toBe(400);
    expect((await post(gateway, 'completions', { model: 'tiny', prompt: `![](${ADDRESS})` })).status).toBe(400);
    expect(engines[0]?.received).toEqual([]);
    await close();
  });

  const IMAGE = `![](${ADDRESS})`;
  const said = { role: 'user', content: 'Hi' };
  const tool = (fields: object): object => ({
    messages: [said],
    tools: [{ type: 'function', function: { name: 'f', parameters: {}, ...fields } }],
  });
  it.each<[where: string, body: object]>([
    ['the description of a tool', tool({ description: IMAGE })],
    ['the schema of a tool', tool({ parameters: { properties: { a: { description: IMAGE } } } })],
    ['a name in the schema of a tool', tool({ parameters: { properties: { [IMAGE]: {} } } })],
    [
      'the arguments of a call',
      {
        messages: [
          said,
          { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: IMAGE } }] },
          { role: 'tool', tool_call_id: 'c', content: 'a' },
        ],
      },
    ],
    ['a role', { messages: [{ role: IMAGE, content: 'Hi' }] }],
    ['the words that introduce tools', { ...tool({}), tool_prompt: IMAGE }],
    ['a variable of the template', { messages: [said], chat_template_kwargs: { a: IMAGE } }],
  ])('nor for what it writes into the prompt: %s', async (_where, body) => {
    const { gateway, engines, close } = await gatewayTo({ engine: 'tgi', plain: PLAIN });
    expect((await post(gateway, 'chat/completions', { model: 'tiny', ...body })).status).toBe(400);
    expect(engines[0]?.received).toEqual([]);
    await close();
  });
});
