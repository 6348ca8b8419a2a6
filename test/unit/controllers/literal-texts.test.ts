import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { gpuInstanceSpecSchema } from '../../../src/resources/instances/gpu-instance.ts';
import { gpuInstance } from '../../support/inventory-world.ts';
import { podOf } from '../../support/pod-of.ts';

/** What a container gets of a field of its pod, with these variables (third_party/forked/golang/expansion of Kubernetes). */
function expanded(text: string, variables: ReadonlyMap<string, string>): string {
  let out = '';
  for (let at = 0; at < text.length; at += 1) {
    const next = text[at + 1];
    if (text[at] !== '$' || next === undefined) {
      out += text[at];
      continue;
    }
    at += 1;
    const end = next === '(' ? text.indexOf(')', at) : -1;
    if (next === '$') out += '$';
    else if (end < 0) out += `$${next}`;
    else {
      const name = text.slice(at + 1, end);
      out += variables.get(name) ?? `$(${name})`;
      at = end;
    }
  }
  return out;
}

/** What the container of an instance gets, as the kubelet makes it. */
function received(spec: Partial<GpuInstanceSpec>) {
  const pod = podOf(gpuInstance('one', spec));
  const [main] = pod.spec?.containers ?? [];
  const env = new Map<string, string>();
  for (const { name, value = '' } of main?.env ?? []) env.set(name, expanded(value, env));
  const words = (list: readonly string[] | undefined) => list?.map((word) => expanded(word, env));
  return { env, command: words(main?.command), args: words(main?.args) };
}

const NAMES = ['A', 'B', 'BERTH_GPU_NAME', 'hostname'];
const TEXT = fc
  .array(fc.constantFrom('$', '$$', '$(', ')', '(', '\\', "'", '"', '\n', '\r', '\t', '\u0001', 'é', '🚀', ...NAMES))
  .map((parts) => parts.join(''));

test('a text arrives as it was given, whatever Kubernetes would make of it', () => {
  fc.assert(
    fc.property(fc.array(TEXT, { minLength: 4, maxLength: 4 }), fc.array(TEXT, { maxLength: 4 }), (values, words) => {
      const env = NAMES.map((name, index) => ({ name, value: values[index] ?? '' }));
      const got = received({ runtype: 'args', env, command: words, args: words });
      expect(NAMES.map((name) => got.env.get(name))).toEqual(values);
      expect([got.command ?? [], got.args ?? []]).toEqual([words, words]);
      expect(received({ env, onStart: values[0] ?? '' }).command?.at(-1)).toBe(values[0]);
    }),
  );
});

test('a script runs as it was written, also where it begins as an option would', () => {
  const script = `-x() { :; }; echo "$$" '$(BERTH_GPU_NAME)' "$(printf %s 'a  b')"`;
  const { command = [] } = received({ onStart: script });
  const [text = '', name = '', given = ''] = command.slice(6);
  expect(given).toBe(script);
  const end = text.indexOf('exec ');
  const { stdout } = spawnSync('/bin/sh', ['-c', `${text.slice(0, end)}wait`, name, given], { encoding: 'utf8' });
  expect(stdout).toMatch(/^\d+ \$\(BERTH_GPU_NAME\) a {2}b\n$/);
});

test('what no program can get is refused with words', () => {
  const refusal = (spec: object): string | undefined => gpuInstanceSpecSchema.safeParse(spec).error?.issues[0]?.message;
  const long = '🚀'.repeat(32_768);
  expect(refusal({ env: [{ name: 'A', value: 'a\0b' }] })).toContain('remove the NUL character');
  expect(refusal({ onStart: 'a\0b' })).toContain('remove the NUL character');
  expect(refusal({ args: ['\0'] })).toContain('remove the NUL character');
  expect(refusal({ onStart: long })).toContain('at most 130814 bytes');
  expect(refusal({ onStart: 'x'.repeat(65_536) })).toBeUndefined();
  expect(refusal({ env: [{ name: 'A', value: '\u0001\r\n\u007f' }] })).toBeUndefined();
});

test('a name that the API server would refuse in the pod is refused before', () => {
  const fits = (spec: object): boolean => gpuInstanceSpecSchema.safeParse(spec).success;
  const variable = (name: string): boolean => fits({ env: [{ name }] });
  expect(['A', '_', '-a', '.a', 'a..b', '.1'].map(variable)).toEqual(Array(6).fill(true));
  expect(['.', '..', '..a', '1a', 'a b', ''].map(variable)).toEqual(Array(6).fill(false));
  const port = (name: string): boolean => fits({ ports: [{ containerPort: 1, name }] });
  expect(['http', 'a', '8a', '80-80a-1', 'a-b'].map(port)).toEqual(Array(5).fill(true));
  expect(['8080', 'a--b', '-a', 'a-', '1-2', 'A'].map(port)).toEqual(Array(6).fill(false));
});
