import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { runLlamaPod } from '../../support/llama/pod.ts';
import { LLAMA_MODEL, startLlama } from '../../support/llama/server.ts';
import { openCluster } from '../../support/http/open.ts';
import { startReplicas } from '../../support/http/replicas.ts';
import { startGateway } from '../../support/model-gateway.ts';
import { describeWith, testWith } from '../../support/needs.ts';
import { pythonWith } from '../../support/python.ts';
import { sdkCallers } from '../../support/sdk-callers.ts';
import { startValkey } from '../../support/valkey/server.ts';
import { waitFor } from '../../support/wait-for.ts';

/** The Services in front of the server, each with one alias of the model, and the dialects that each makes native. */
const SERVICES = {
  // The build does not tell its number, so its messages route counts as one of the early ones.
  llama: { annotations: {}, native: ['chat'] },
  'llama-messages': {
    annotations: { 'berth.dev/model-dialects': 'messages', 'berth.dev/model-engine': 'unknown' },
    native: ['messages'],
  },
} as const;
type Name = keyof typeof SERVICES;
const NAMES = Object.keys(SERVICES) as Name[];
const ALIASES = { llama: 'over-chat', 'llama-messages': 'over-messages' } as const;
/** What the documentation calls its model. */
const DOCUMENTED = 'qwen';

function annotationsOf(name: Name): Record<string, string> {
  return {
    ...SERVICES[name].annotations,
    'berth.dev/model-aliases': name === 'llama' ? `${ALIASES[name]},${DOCUMENTED}` : ALIASES[name],
  };
}

/** The blocks of docs/use/models.md in a language: first line and text. */
function documented(language: string): [first: string, code: string][] {
  const text = readFileSync(join(ROOT, 'docs/use/models.md'), 'utf8');
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))];
  return blocks.map(([, code = '']) => [code.split('\n', 2).join('; '), code]);
}

interface Place {
  /** Ends in `/api`. */
  base: string;
  /** The same of each replica behind it. */
  replicas: readonly string[];
  key: string;
  close: () => Promise<void>;
}

/** In a pod, found through the API server by two replicas of the product that share a Valkey, with a real key. */
async function onRealNode(nodeName: string): Promise<Place> {
  const { kubeconfig, initPid, programs } = inject('cluster');
  if (initPid === undefined || programs === undefined) throw new Error('a real node has both');
  const cluster = await openCluster();
  const namespace = await cluster.namespace('models');
  const services = Object.fromEntries(NAMES.map((name) => [name, annotationsOf(name)]));
  await runLlamaPod(cluster.client, { node: { initPid, programs }, nodeName, namespace, services });
  const valkey = await startValkey();
  const api = await startReplicas(kubeconfig, { env: { BERTH_VALKEY_URL: valkey.url } });
  return {
    base: `${api.url}/api`,
    replicas: api.replicas.map((url) => `${url}/api`),
    key: await cluster.key(namespace, { scopes: ['models'] }, api),
    close: async () => {
      await api[Symbol.asyncDispose]();
      await valkey.kill();
      await cluster[Symbol.asyncDispose]();
    },
  };
}

/** Where no container can run: on the loopback, with the stores that discovery reads filled by hand. */
async function onLoopback(): Promise<Place> {
  process.stderr.write('There is no real node: llama.cpp runs on the loopback and not in a pod.\n');
  const [llama, gateway] = await Promise.all([startLlama(), startGateway()]);
  for (const name of NAMES) gateway.cluster.serve({ name, ports: [llama.port], annotations: annotationsOf(name) });
  return {
    base: gateway.base,
    replicas: [gateway.base],
    key: 'none',
    close: async () => {
      await gateway.close();
      await llama.close();
    },
  };
}

const { realNode } = inject('cluster');

describeWith('Python venv')(
  `llama.cpp's server ${realNode === undefined ? 'on the loopback' : 'in a pod'} behind the gateway`,
  () => {
    let place: Place;
    let python: string;

    async function modelOf(alias: string, base = place.base): Promise<Record<string, unknown>> {
      const headers = { authorization: `Bearer ${place.key}` };
      const response = await fetch(`${base}/v1/models/${alias}`, { headers });
      return (await response.json()) as Record<string, unknown>;
    }

    beforeAll(async () => {
      const clients = await pythonWith('python-clients', join(ROOT, 'test/support/python-clients.txt'));
      python = join(clients, 'bin/python');
      place = await (realNode === undefined ? onLoopback() : onRealNode(realNode));
      for (const base of place.replicas) {
        for (const alias of Object.values(ALIASES)) {
          const ready = async () => (await modelOf(alias, base))['ready_endpoints'] === 1;
          await waitFor(`${alias} to be ready`, ready);
        }
      }
    }, 600_000);
    afterAll(() => place.close());

    function environment(): NodeJS.ProcessEnv {
      return { ...process.env, BERTH_URL: place.base.replace(/\/api$/, ''), BERTH_API_KEY: place.key };
    }

    it('is recognised by its probe', async () => {
      expect(await modelOf('over-chat')).toMatchObject({
        engine: 'llama.cpp',
        dialects: { chat: 'native', responses: 'translated', messages: 'translated' },
        context_length: 4096,
      });
      expect(await modelOf(LLAMA_MODEL)).toMatchObject({ id: LLAMA_MODEL, ready_endpoints: 1 });
    });

    const CELLS = sdkCallers('http://unused').flatMap(({ client, dialect }, index) =>
      NAMES.flatMap((name) => {
        const native = (SERVICES[name].native as readonly string[]).includes(dialect);
        const route = native ? 'native' : 'translated';
        return [false, true].map((stream) => ({ index, client, dialect, model: ALIASES[name], stream, route }));
      }),
    );

    it.each(CELLS)('answers $client in $dialect, stream $stream, $model: $route', async (cell) => {
      const { index, model, stream, route } = cell;
      const caller = sdkCallers(place.base, place.key)[index];
      const answer = await caller?.call({ model, prompt: 'Say hello', stream, maxTokens: 24 });
      expect(answer?.text).toContain('fn');
      expect(answer?.inputTokens).toBeGreaterThan(5);
      expect(answer?.outputTokens).toBeGreaterThan(10);
      expect(answer?.outputTokens).toBeLessThanOrEqual(24);
      expect(answer?.route.split(';')[0]).toBe(route);
    });

    it.each(CELLS)('calls the tool that $client forces in $dialect, stream $stream, $model: $route', async (cell) => {
      const { index, model, stream, route } = cell;
      const caller = sdkCallers(place.base, place.key)[index];
      const answer = await caller?.call({ model, prompt: 'Weather?', stream, tool: 'forced', maxTokens: 900 });
      expect(answer?.calls.length).toBeGreaterThan(0);
      for (const call of answer?.calls ?? []) {
        expect(call).toEqual({ name: 'weather', input: { city: expect.any(String) as string } });
      }
      expect(answer?.route.split(';')[0]).toBe(route);
    });

    it.each(documented('python'))(
      'runs the snippet of docs/use/models.md that begins with %s',
      async (_first, code) => {
        const { code: status, stdout, stderr } = await run(python, ['-c', code], { env: environment() });
        expect(status, stderr).toBe(0);
        expect(stdout).toContain('fn');
      },
    );

    testWith('curl').each(documented('sh').filter(([, code]) => code.includes('curl')))(
      'runs the commands %s',
      async (_first, code) => {
        const { stdout } = await run('sh', ['-c', code.replace(/^export .*$/m, '')], { env: environment() });
        expect(JSON.parse(stdout)).toMatchObject({ id: DOCUMENTED, ready_endpoints: 1 });
      },
    );

    it.each(Object.values(ALIASES))(
      'tells a prompt beyond the context in the words of each dialect: %s',
      async (model) => {
        const prompt = 'word '.repeat(8000);
        const messages = [{ role: 'user', content: prompt }];
        const send = (path: string, body: object): Promise<Response> =>
          fetch(`${place.base}/v1/${path}`, {
            method: 'POST',
            headers: { authorization: `Bearer ${place.key}`, 'content-type': 'application/json' },
            body: JSON.stringify({ model, ...body }),
          });
        for (const stream of [false, true]) {
          const anthropic = await send('messages', { messages, max_tokens: 9, stream });
          expect([anthropic.status, await anthropic.text()]).toEqual([
            400,
            expect.stringMatching(/"prompt is too long: \d+ tokens > 4096 maximum"/) as string,
          ]);
          const chat = await send('chat/completions', { messages, stream });
          expect([chat.status, await chat.json()]).toMatchObject([400, { error: { code: 'context_length_exceeded' } }]);
        }
        const failed = await (await send('responses', { input: prompt, stream: true })).text();
        expect(failed).toMatch(/event: response\.failed\ndata: .*"error":\{"code":"context_length_exceeded"/);
      },
    );

    it('counts tokens', async () => {
      const body = { model: 'over-chat', messages: [{ role: 'user', content: 'How many tokens is this?' }] };
      const response = await fetch(`${place.base}/v1/messages/count_tokens`, {
        method: 'POST',
        headers: { 'x-api-key': place.key, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const { input_tokens: tokens } = (await response.json()) as { input_tokens: number };
      expect(tokens).toBeGreaterThan(20);
    });
  },
);
