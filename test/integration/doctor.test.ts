import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { notFound, plantFaults, runDoctor } from '../support/planted-faults.ts';
import { type TestNamespace, testNamespace } from '../support/test-cluster.ts';
import { waitFor } from '../support/wait-for.ts';

let space: TestNamespace;
const { kubeconfig } = inject('cluster');

beforeAll(async () => {
  space = await testNamespace();
});
afterAll(async () => {
  await space[Symbol.asyncDispose]();
});

test('finds every fault that is planted, with a remedy, and none of them any more when they are gone', async () => {
  const planted = await plantFaults(space.client);
  let during;
  try {
    during = await runDoctor(kubeconfig);
  } finally {
    await planted[Symbol.asyncDispose]();
  }
  expect(notFound(planted, during.findings)).toEqual([]);
  expect(during.code).toBe(1);
  expect(during.findings.filter(({ remedy, why }) => remedy === '' || why === '')).toEqual([]);
  const objects = new Set(planted.expected.map(([, , object]) => object));
  await waitFor('none of them is found', async () => {
    const { findings } = await runDoctor(kubeconfig);
    return !findings.some((one) => one.objects.some((object) => objects.has(object)));
  });
});

test('the definitions, the version and the clocks of the cluster are sound', async () => {
  const { findings, sound } = await runDoctor(kubeconfig);
  expect(findings.filter(({ check }) => check === 'definitions' || check === 'versions')).toEqual([]);
  expect(sound).toEqual(expect.arrayContaining(['definitions', 'versions']));
  // A kubelet whose call took long on a busy machine looks as if its clock were behind, until its next call.
  await waitFor('the clocks agree', async () => (await runDoctor(kubeconfig)).sound.includes('clocks'));
});

test('without rights nothing is said to be sound or wrong: each check names the right that is missing', async () => {
  const account = `/api/v1/namespaces/${space.name}/serviceaccounts`;
  await space.client.raw('POST', account, { metadata: { name: 'nobody' } });
  const asked = await space.client.raw<{ status: { token: string } }>('POST', `${account}/nobody/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 600 },
  });
  const folder = await mkdtemp(join(tmpdir(), 'berth-doctor-'));
  const file = join(folder, 'kubeconfig');
  const given = parse(await readFile(kubeconfig, 'utf8')) as { users: { name: string; user: object }[] };
  const users = given.users.map(({ name }) => ({ name, user: { token: asked.status.token } }));
  await writeFile(file, stringify({ ...given, users }), { mode: 0o600 });
  const { code, findings, sound } = await runDoctor(file);
  await rm(folder, { recursive: true });
  expect(new Set(findings.map(({ reason, severity }) => `${severity} ${reason}`))).toEqual(
    new Set(['unknown RightMissing']),
  );
  expect(findings.map(({ message }) => message)).toContain('Not checked: you may not list nodes.');
  expect([code, sound]).toEqual([0, []]);
});

test('an unknown output and an unknown option are refused', async () => {
  await expect(runDoctor(kubeconfig, ['--output', 'xml'])).rejects.toThrow('Usage: berth doctor');
  await expect(runDoctor(kubeconfig, ['--fix'])).rejects.toThrow("Unknown option '--fix'");
});
