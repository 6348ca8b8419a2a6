/** What reaches a model server is read there as it was read here: by the readers of Go, of Python and of Rust's serde. */
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { requireGo } from '../../../tools/lib/go/find.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { ambiguousForms, FORM_TYPE, formOf } from '../../support/ambiguous-bodies.ts';
import { CALLER, gatewayTo, type TestGateway } from '../../support/model-gateway.ts';
import { describeWith } from '../../support/needs.ts';
import { pythonWith } from '../../support/python.ts';
import type { ScriptedEngine } from '../../support/scripted-engine.ts';

const FOLDER = join(ROOT, 'test/support/readers');
const JSON_TYPE = 'application/json';
const BODIES = 400;

interface Body {
  contentType: string;
  text: string;
}

interface Found {
  model: string;
  stream: boolean;
  error?: string;
}

type Reader = (bodies: readonly Body[]) => Promise<Found[]>;

async function readWith(program: string, args: readonly string[], bodies: readonly Body[]): Promise<Found[]> {
  const input = bodies.map(({ contentType, text }) =>
    JSON.stringify({ contentType, bytes: Buffer.from(text).toString('base64') }),
  );
  const { code, stdout, stderr } = await run(program, args, { cwd: FOLDER, input: `${input.join('\n')}\n` });
  if (code !== 0) throw new Error(stderr);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Found);
}

/** Members of an object that name a model or a stream in some spelling. */
const member = fc.tuple(
  fc.constantFrom(
    'model',
    'model',
    'Model',
    'MODEL',
    String.raw`mod\u0065l`,
    String.raw`\u004dodel`,
    'stream',
    'ſtream',
    'x',
  ),
  fc.constantFrom('"tiny"', '"large"', 'true', 'false', 'null', '{"model":"large"}'),
);
const json = fc.array(member, { minLength: 1, maxLength: 4 }).map((members): Body => {
  const all = [...members.map(([name, value]) => `"${name}":${value}`), '"messages":[{"role":"user","content":"Hi"}]'];
  return { contentType: JSON_TYPE, text: `{${all.join(', ')}}` };
});

/** Mostly the first, which is what clients write. */
const mostly = <T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof(
    { weight: 3 * others.length, arbitrary: fc.constant(usual) },
    { weight: others.length, arbitrary: fc.constantFrom(...others) },
  );
const part = fc
  .record({
    name: mostly('model', 'stream', 'Model', 'x', 'y'),
    value: mostly('tiny', 'large', 'true', '\r\n--b', 'a\n--b\nb', '--b--'),
    head: mostly(
      (name: string) => `Content-Disposition: form-data; name="${name}"`,
      (name: string) => `content-disposition:form-data;name=${name}`,
      (name: string) => `Content-Disposition: form-data; name = "${name}"`,
      (name: string) => `Content-Disposition: form-data; name="x"; name*=utf-8''${name}`,
      (name: string) => `Content-Disposition: form-data;\r\n\tname="${name}"`,
      (name: string) => `Content-Disposition: form-data; name="${name}"; filename="f"`,
      (name: string) => `Content-Type: text/plain\r\nContent-Disposition: form-data; name="${name}"`,
      (name: string) => `Content-Disposition: attachment; name="${name}"`,
    ),
    end: mostly('\r\n\r\n', '\n\n', '\r\n \r\n'),
  })
  .map(({ name, value, head, end }) => `${head(name)}${end}${value}`);
const form = fc
  .record({
    parts: fc.array(part, { minLength: 1, maxLength: 3 }),
    type: mostly(FORM_TYPE, `${FORM_TYPE}; boundary=c`, 'multipart/form-data; boundary="b"', `${FORM_TYPE} ; x=y`),
    change: mostly(
      (text: string) => text,
      (text: string) => text.replaceAll('\r\n', '\n'),
      (text: string) => text.replace('--b\r\n', '--b \r\n'),
      (text: string) => `\r\n${text}`,
      (text: string) => `${text}x`,
    ),
  })
  .map(({ parts, type, change }): Body => ({ contentType: type, text: change(formOf(...parts)) }));

describeWith('Python venv')('a body that a key of one model sends', () => {
  let gateway: TestGateway;
  let engine: ScriptedEngine;
  let close: () => Promise<void>;
  let readers: Readonly<Record<string, Reader>>;

  beforeAll(async () => {
    const plain = { '/v1/audio/transcriptions': { contentType: JSON_TYPE, body: '{"text":"Hi"}' } };
    const started = await gatewayTo({ models: ['tiny', 'large'], plain });
    ({ gateway, close } = started);
    engine = started.engines[0] as ScriptedEngine;
    gateway.callAs({ ...CALLER, models: ['tiny'] });
    const go = await requireGo();
    const python = join(await pythonWith('readers', join(FOLDER, 'requirements.txt')), 'bin/python');
    readers = {
      go: (bodies) => readWith(go, ['run', '.'], bodies),
      python: (bodies) => readWith(python, ['read.py'], bodies),
    };
  }, 300_000);
  afterAll(() => close());

  /** What reached the engine of these bodies. */
  async function passedOn(bodies: readonly Body[]): Promise<Body[]> {
    const before = engine.received.length;
    for (const { contentType, text } of bodies) {
      const path = contentType === JSON_TYPE ? 'chat/completions' : 'audio/transcriptions';
      const headers = { 'content-type': contentType };
      const response = await fetch(`${gateway.base}/v1/${path}`, { method: 'POST', headers, body: text });
      expect([200, 400, 404]).toContain(response.status);
      await response.text();
    }
    return engine.received
      .slice(before)
      .map(({ headers, text }) => ({ contentType: headers['content-type'] ?? '', text }));
  }

  it.each([
    ['JSON', json],
    ['forms', form],
  ])('names that model to every reader, in %s', async (_name, bodies) => {
    const passed = await passedOn(fc.sample(bodies, { numRuns: BODIES, seed: 6 }));
    // The generator makes bodies of both kinds.
    expect(passed.length).toBeGreaterThan(BODIES / 100);
    expect(passed.length).toBeLessThan(BODIES);
    const seen = Object.fromEntries(
      await Promise.all(Object.entries(readers).map(async ([name, read]) => [name, await read(passed)] as const)),
    );
    for (const [index, { text }] of passed.entries())
      for (const [name, found] of Object.entries(seen))
        expect([name, found[index]?.model, text]).toEqual([name, 'tiny', text]);
    expect(seen['go']).toEqual(seen['python']);
  });

  it('is refused where these readers differ', async () => {
    const bodies = ambiguousForms('tiny', 'large').map(([, contentType, text]): Body => ({ contentType, text }));
    expect(await passedOn(bodies)).toEqual([]);
    const go = await readers['go']?.(bodies);
    const python = await readers['python']?.(bodies);
    const differ = bodies.filter(
      (_, index) => go?.[index]?.model !== python?.[index]?.model || go?.[index]?.model === 'large',
    );
    expect(differ.length).toBeGreaterThan(3);
  });
});
