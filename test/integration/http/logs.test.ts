import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { logSchema } from '../../../src/http/features/logs/schema.ts';
import { PODS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { CONTAINERD_SOCKET } from '../../../tools/lib/images/image.ts';
import { run } from '../../../tools/lib/shell.ts';
import { BUSYBOX_IMAGE } from '../../../tools/cluster/built/real-node.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { type Events, openEvents } from '../../support/http/events.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { describeWith } from '../../support/needs.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

let replicas: BerthProcess[] = [];
let tenant: TestNamespace;
let stranger: TestNamespace;
let token: string;
let call: Call;
let other: Call;
let strangerToken: string;

/** Writes a line ten times a second without an end, and numbers them. */
const COUNT = 'i=0; while :; do i=$((i+1)); echo "line $i"; sleep 0.1; done';

async function create(name: string, spec: Record<string, unknown>): Promise<void> {
  const metadata = { name, namespace: tenant.name };
  const wanted = { gpu: { product: 'NVIDIA-L4', count: 1 }, image: BUSYBOX_IMAGE, ...spec };
  await tenant.client.create(GPU_INSTANCES, { metadata, spec: wanted } as never);
}

function texts({ data }: { data: Record<string, unknown>[] }): string[] {
  return data.map(({ text }) => String(text));
}

function linesOf({ seen }: Events): string[] {
  return seen.filter(({ type }) => type === 'line').map(({ json }) => String(json['text']));
}

async function remove(name: string): Promise<void> {
  await tenant.client.delete(GPU_INSTANCES, { name, namespace: tenant.name });
  await waitFor(`${name} is gone`, async () => (await call('GET', `/instances/${name}`)).status === 404, 60_000);
}

function urlOf(berth: BerthProcess | undefined, path: string): string {
  return `${berth?.url}/api/v1${path}`;
}

beforeAll(async () => {
  const { kubeconfig } = inject('cluster');
  [tenant, stranger] = await Promise.all([testNamespace(), testNamespace()]);
  await kindsCounted(tenant.client);
  replicas = await Promise.all([
    startBerth(kubeconfig, 'controller'),
    startBerth(kubeconfig, 'api'),
    startBerth(kubeconfig, 'api'),
  ]);
  const [, api] = replicas;
  ({ token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'logs' }));
  call = clientOf(api?.url ?? '', token);
  ({ token: strangerToken } = await createKey(stranger.client, {
    namespace: stranger.name,
    displayName: 'stranger',
  }));
  other = clientOf(api?.url ?? '', strangerToken);
  await waitFor('the keys', async () => (await other('GET', '/offers')).status === 200);
  await waitFor('the keys', async () => (await call('GET', '/offers')).status === 200);
});
afterAll(async () => {
  for (const berth of replicas) await berth[Symbol.asyncDispose]();
  await Promise.all([tenant[Symbol.asyncDispose](), stranger[Symbol.asyncDispose]()]);
});

const onNode = describeWith('real node');

onNode('logs', () => {
  it('are read with a key: the last lines, since a time, as JSON and as text', async () => {
    const onStart = String.raw`printf 'one\nt\351\033[31m<b>\ntwo\n'; echo wrong >&2`;
    await create('said', { onStart });
    const waiting = await call('GET', '/instances/said/logs');
    expect([409, 200]).toContain(waiting.status);
    const answer = await waitFor(
      'the log',
      async () => {
        const found = await call('GET', '/instances/said/logs');
        return found.data.length === 4 && found;
      },
      60_000,
    );
    const lines = texts(answer);
    expect(lines.filter((line) => line !== 'wrong')).toEqual(['one', 't�\u001b[31m<b>', 'two']);
    expect(lines).toContain('wrong');
    expect(answer.json).toMatchObject({ instance_id: 'said', source: 'container', truncated: false });
    expect(answer.text).toContain(String.raw`\u001b[31m`);
    const last = await call('GET', '/instances/said/logs?tail=1&source=on_start');
    expect(texts(last)).toEqual(lines.slice(-1));
    const { data } = logSchema.parse(answer.json);
    const { at = '' } = data[2] ?? {};
    // What is said to the two outputs may come in another order than it has by its times.
    const later = data.filter((line) => line.at >= at).map(({ text }) => text);
    expect(texts(await call('GET', `/instances/said/logs?since=${at}`))).toEqual(later);
    expect(texts(await call('GET', '/instances/said/logs?since=10m'))).toEqual(lines);
    const plain = await call('GET', '/instances/said/logs?tail=4', undefined, { accept: 'text/plain' });
    expect(plain.text).toBe(lines.map((line) => `${line}\n`).join(''));
    expect(plain.headers.get('x-content-type-options')).toBe('nosniff');
    expect(plain.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    const previous = await call('GET', '/instances/said/logs?previous=true');
    expect([previous.status, previous.error['code']]).toEqual([404, 'log_not_found']);
    const bad = await call('GET', '/instances/said/logs?tail=-1&lines=3&follow=maybe');
    expect([bad.status, (bad.error['fields'] as { path: string }[]).map(({ path }) => path)]).toEqual([
      422,
      ['tail', 'follow', 'lines'],
    ]);
  });

  it('are for the tenant of the instance alone, and for keys that may read', async () => {
    const theirs = await other('GET', '/instances/said/logs');
    expect([theirs.status, theirs.error['code']]).toEqual([404, 'instance_not_found']);
    const { token: writer } = await createKey(tenant.client, {
      namespace: tenant.name,
      displayName: 'writer',
      scopes: ['compute:write'],
    });
    const write = clientOf(replicas[1]?.url ?? '', writer);
    await waitFor('the refusal', async () => (await write('GET', '/instances/said/logs')).status === 403);
    await remove('said');
  });

  it('say that a simulated instance has none', async () => {
    await create('simulated', { gpu: { product: 'NVIDIA-A100-SXM4-80GB', count: 1 } });
    await waitFor(
      'the refusal',
      async () => {
        const { status, error } = await call('GET', '/instances/simulated/logs');
        return status === 409 && error['code'] === 'instance_simulated';
      },
      60_000,
    );
    await remove('simulated');
  });

  it('are followed through the kill of a replica and restarts of the container, and lose and repeat nothing', async () => {
    await create('counts', { onStart: COUNT });
    await waitFor('the instance in the caches', async () => (await call('GET', '/instances/counts')).status === 200);
    const path = '/instances/counts/logs?follow=true';
    const [, killed, kept] = replicas;
    const first = await openEvents(urlOf(killed, path), token);
    await waitFor('some lines', () => linesOf(first).length > 10, 60_000);
    killed?.child.kill('SIGKILL');
    await first.ended.catch(() => undefined);
    const lastId = first.seen.findLast(({ type }) => type === 'line')?.id;
    const second = await openEvents(urlOf(kept, path), token, lastId);
    call = clientOf(kept?.url ?? '', token);
    const sofar = (): string[] => [...linesOf(first), ...linesOf(second)];
    await waitFor('more lines', () => linesOf(second).length > 10);
    expect(sofar()).toEqual(sofar().map((_, index) => `line ${index + 1}`));
    expect(second.seen[0]?.type).toBe('line');

    await restart('counts-1');
    const restarted = (): number => second.seen.findIndex(({ type }) => type === 'restart');
    await waitFor('the restart', () => restarted() >= 0, 60_000);
    const at = restarted() + 1;
    await waitFor('lines after it', () => second.seen.length > at + 5);
    const after = second.seen.slice(at).filter(({ type }) => type === 'line');
    expect(after.map(({ json }) => json['text'])).toEqual(after.map((_, index) => `line ${index + 1}`));
    const before = [
      ...linesOf(first),
      ...second.seen
        .slice(0, at)
        .filter(({ type }) => type === 'line')
        .map(({ json }) => json['text']),
    ];
    expect(before).toEqual(before.map((_, index) => `line ${index + 1}`));
    expect(second.seen.filter(({ type }) => type === 'gap')).toEqual([]);
    await second.close();

    // A client that was away during the restart gets the end of the log before it.
    const middle = second.seen[5]?.id;
    const third = await openEvents(urlOf(kept, path), token, middle);
    const told = ({ seen }: Events): Events['seen'] => seen.filter(({ type }) => type !== 'waiting');
    const expected = told({ ...second, seen: second.seen.slice(6) });
    await waitFor('the same', () => told(third).length > expected.length);
    expect(told(third).slice(0, expected.length)).toEqual(expected);
    await third.close();

    const earlier = await call('GET', '/instances/counts/logs?previous=true');
    expect(texts(earlier)).toEqual(before.slice(-1000));

    const end = await openEvents(urlOf(kept, path), token, third.seen.at(-1)?.id);
    await call('PATCH', '/instances/counts', { state: 'stopped' });
    await end.ended;
    expect(end.seen.at(-1)).toMatchObject({ type: 'end', json: { state: 'stopped' } });
    // What the program said after it was told to end is kept once it has ended.
    const stopped = await waitFor('the whole log', async () => {
      const answer = await call('GET', '/instances/counts/logs');
      expect([answer.status, answer.json]).toMatchObject([200, { kept: true, start: 1, truncated: false }]);
      return texts(answer).at(-1) === linesOf(end).at(-1) && answer;
    });
    expect(texts(stopped)).toEqual(texts(stopped).map((_, index) => `line ${index + 1}`));
    const crashed = await call('GET', '/instances/counts/logs?previous=true');
    expect(texts(crashed)).toEqual(before.slice(-500));
  });

  it('are kept when a program fails, also after its instance is gone, for its tenant alone', async () => {
    const program = 'echo working; echo failed >&2; exit 3';
    await create('fails', { runtype: 'args', command: ['sh', '-c', program] });
    const ended = await waitFor(
      'the end',
      async () => {
        const { json } = await call('GET', '/instances/fails');
        return json['state'] === 'failed' && json;
      },
      60_000,
    );
    expect(ended['reason']).toBe('ContainerFailed');
    const check = async (): Promise<void> => {
      const answer = await call('GET', '/instances/fails/logs');
      expect([answer.status, answer.json]).toMatchObject([200, { kept: true, start: 1, instance_id: 'fails' }]);
      expect(texts(answer).toSorted()).toEqual(['failed', 'working']);
      const followed = await openEvents(urlOf(replicas[2], '/instances/fails/logs?follow=true'), token);
      await followed.ended;
      expect([linesOf(followed).length, followed.seen.at(-1)?.type]).toEqual([2, 'end']);
    };
    await check();
    await remove('fails');
    await waitFor('the history', async () => (await call('GET', '/instances/fails/events')).status === 200, 60_000);
    await waitFor(
      'the end in the history',
      async () => {
        const { json } = await call('GET', '/instances/fails/events');
        return json['ended_at'] !== null;
      },
      60_000,
    );
    await check();
    const theirs = clientOf(replicas[2]?.url ?? '', strangerToken);
    expect((await theirs('GET', '/instances/fails/logs')).error['code']).toBe('instance_not_found');
  });
});

/** Kills the container of a pod, as an out-of-memory killer would; the kubelet starts it again. */
async function restart(pod: string): Promise<void> {
  const { status } = await tenant.client.get(PODS, { name: pod, namespace: tenant.name });
  const id = status?.containerStatuses?.find(({ name }) => name === 'main')?.containerID?.replace('containerd://', '');
  const { initPid, programs = '' } = inject('cluster');
  const inside = ['--target', String(initPid), '--mount', '--net', '--pid'];
  const { code, stderr } = await run('nsenter', [
    ...inside,
    join(programs, 'ctr'),
    '-a',
    CONTAINERD_SOCKET,
    '-n',
    'k8s.io',
    'tasks',
    'kill',
    '-s',
    'SIGKILL',
    id ?? '',
  ]);
  if (code !== 0) throw new Error(stderr);
}
