/**
 * The SSH gateway against kubectl exec, both against the same pod on the real node and in turns, so that a busy machine
 * slows both. `node test/bench/ssh.ts [MiB] [rounds] [connections]` prints a Markdown table. Brings up its own cluster; needs root.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import ssh2 from 'ssh2';
import { loadKubeConfig } from '../../src/kube/config.ts';
import { PODS } from '../../src/kube/types.ts';
import { bringUp } from '../../src/local/bring-up.ts';
import { importImage } from '../../src/local/image.ts';
import { readOptions } from '../../src/local/options.ts';
import { cacheFolder, stateFolder } from '../../src/local/paths.ts';
import { createProgress } from '../../src/local/progress.ts';
import { toolsImage } from '../../src/local/tools-image.ts';
import { TOOLS_BIN, toolsVolume } from '../../src/resources/tools-volume.ts';
import { parseAuthorizedKey } from '../../src/ssh/authorized-key.ts';
import type { InstanceDirectory } from '../../src/ssh/directory.ts';
import { startSshServer, type SshServer } from '../../src/ssh/server.ts';
import { waitFor } from '../support/wait-for.ts';

const MIB = 1024 * 1024;
const [size = 256, rounds = 5, many = 1000] = process.argv.slice(2).map(Number);
const SMALL = 15;
const IMAGE = 'localhost/berth-tools:bench';

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Milliseconds that a shell command takes. Throws when it fails. */
async function timed(command: string): Promise<number> {
  const began = performance.now();
  const [code] = (await once(spawn('sh', ['-c', command], { stdio: ['ignore', 'ignore', 'inherit'] }), 'close')) as [
    number,
  ];
  if (code !== 0) throw new Error(`${command}: status ${code}`);
  return performance.now() - began;
}

/** Medians of two commands run in turns. */
async function inTurns(ours: string, theirs: string, count: number): Promise<[number, number]> {
  const [a, b]: [number[], number[]] = [[], []];
  await timed(ours);
  await timed(theirs);
  for (let round = 0; round < count; round += 1) {
    a.push(await timed(ours));
    b.push(await timed(theirs));
  }
  return [median(a), median(b)];
}

async function idleCost(
  server: SshServer,
  username: string,
  privateKey: string,
): Promise<{ kib: number; missed: number }> {
  const { port } = server.address;
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  const source = `
    const { Client } = require('ssh2');
    const all = []; let lost = 0;
    const open = () => new Promise((done) => { const c = new Client(); all.push(c); c.on('ready', done); c.on('error', () => { lost += 1; done(); }); c.on('close', () => { lost += 1; });
      c.connect({ host: '127.0.0.1', port: ${port}, username: ${JSON.stringify(username)}, privateKey: process.env.KEY }); });
    (async () => { for (let i = 0; i < ${many}; i += 20) await Promise.all(Array.from({ length: 20 }, open)); process.stdout.write('open');
      process.stdin.once('data', () => { process.stdout.write(':' + lost); process.exit(); }); })();`;
  const child = spawn(process.execPath, ['-e', source], {
    env: { ...process.env, KEY: privateKey },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (part) => (output += String(part)));
  await waitFor('the idle connections', () => output.includes('open'), 300_000);
  const kib = (process.memoryUsage().rss - before) / 1024 / many;
  // Longer than two keep-alive intervals.
  const until = performance.now() + 35_000;
  await waitFor('two keep-alives', () => performance.now() > until, 60_000);
  child.stdin.write('end');
  await once(child, 'close');
  return { kib, missed: Number(output.split(':')[1]) };
}

async function cycles(server: SshServer, username: string, privateKey: string): Promise<number> {
  const handles = (): number => process.getActiveResourcesInfo().length;
  const before = handles();
  for (let cycle = 0; cycle < many; cycle += 1) {
    const client = new ssh2.Client();
    client.connect({ host: '127.0.0.1', port: server.address.port, username, privateKey });
    await once(client, 'ready');
    const closed = once(client, 'close');
    client.end();
    await closed;
  }
  await waitFor('the connections to go', () => server.connections === 0);
  return handles() - before;
}

const progress = createProgress({ write: (text) => process.stderr.write(text), isTty: false, columns: 80 });
const state = join(stateFolder(), 'bench');
const cluster = await bringUp({
  ...readOptions([], process.env, join(stateFolder(), 'kubeconfig')),
  state,
  cache: cacheFolder(process.env),
  interactive: false,
  tidy: false,
  total: 3,
  progress,
  signal: new AbortController().signal,
});
const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
try {
  const { initPid, programs, kubeconfig, client } = cluster;
  if (initPid === undefined || programs === undefined) throw new Error('The bench needs the real node.');
  await importImage({ initPid, programs }, await toolsImage(IMAGE, cacheFolder(process.env)));
  const { volume, initContainer, mount } = toolsVolume(IMAGE);
  const ref = { namespace: 'default', name: 'bench' };
  await waitFor('the service account', () =>
    client
      .create(PODS, {
        metadata: ref,
        spec: {
          nodeName: 'real-0',
          terminationGracePeriodSeconds: 0,
          initContainers: [initContainer],
          containers: [
            {
              name: 'main',
              image: IMAGE,
              command: [`${TOOLS_BIN}/tini`, '--', `${TOOLS_BIN}/busybox`, 'sleep', '2147483647'],
              volumeMounts: [mount],
            },
          ],
          volumes: [volume],
        },
      })
      .catch(() => undefined),
  );
  const uid = await waitFor(
    'the pod',
    async () => {
      const pod = await client.get(PODS, ref);
      return pod.status?.containerStatuses?.[0]?.state?.running === undefined ? undefined : pod.metadata.uid;
    },
    60_000,
  );
  const pair = ssh2.utils.generateKeyPairSync('ed25519');
  const key = parseAuthorizedKey(pair.public, 'default/bench', 1);
  if (key === undefined) throw new Error('no key');
  const target = { namespace: 'default', pod: 'bench', container: 'main', uid, tools: true };
  const directory: InstanceDirectory = {
    find: () => ({ namespace: 'default', name: 'bench', uid: 'u', condition: 'running', target }),
    tenantKeys: () => [key],
    opens: () => true,
    onChange: () => () => undefined,
  };
  const server = await startSshServer({
    endpoint: await loadKubeConfig({ kubeconfig }),
    directory,
    hostKey: ssh2.utils.generateKeyPairSync('ed25519').private,
    listen: { host: '127.0.0.1', port: 0 },
    log: pino({ level: 'silent' }),
    audit: () => undefined,
    now: () => Date.now(),
    addressLimits: { burst: 1e6, perSecond: 1e6, failures: 1e6, failureWindowSeconds: 1, pending: 1e6 },
  });
  const identity = join(folder, 'id');
  writeFileSync(identity, pair.private, { mode: 0o600 });
  const flags = `-F none -p ${server.address.port} -i ${identity} -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR`;
  const ssh = `ssh ${flags} bench@127.0.0.1`;
  const kubectl = `${programs}/kubectl --kubeconfig ${kubeconfig} exec -i bench -c main --`;
  const bytes = size * MIB;
  const rate = (ms: number): string => `${((size / ms) * 1000).toFixed(0)} MiB/s`;
  console.log(`${cpus().length} × ${cpus()[0]?.model}; medians of ${SMALL} and ${rounds} runs, in turns\n`);
  console.log('| figure | berth ssh | kubectl exec | ratio | to reach |\n|---|---|---|---|---|');
  const [ours, theirs] = await inTurns(
    `${ssh} true </dev/null`,
    `${kubectl} ${TOOLS_BIN}/busybox true </dev/null`,
    SMALL,
  );
  const ratio = (ours / theirs).toFixed(2);
  console.log(`| \`true\`, connection to exit | ${ours.toFixed(0)} ms | ${theirs.toFixed(0)} ms | ${ratio} | ≤ 1.3 |`);
  const head = `head -c ${bytes} /dev/zero`;
  const bulk = {
    out: [`${ssh} '${head}' </dev/null`, `${kubectl} ${TOOLS_BIN}/busybox ${head} </dev/null`],
    in: [`${head} | ${ssh} 'wc -c'`, `${head} | ${kubectl} ${TOOLS_BIN}/busybox wc -c`],
  } as const;
  for (const [direction, [mine, reference]] of Object.entries(bulk)) {
    const [a, b] = await inTurns(mine, reference, rounds);
    console.log(`| ${size} MiB ${direction} | ${rate(a)} | ${rate(b)} | ${(b / a).toFixed(2)} | ≥ 0.65 |`);
  }
  const leaked = await cycles(server, 'bench', pair.private);
  console.log(`| ${many} connect and close cycles | ${leaked} handles left | | | 0 |`);
  const idle = await idleCost(server, 'bench', pair.private);
  console.log(
    `| ${many} idle connections, each | ${idle.kib.toFixed(0)} KiB, ${idle.missed} lost | | | ≤ 150 KiB, 0 |`,
  );
  await client.delete(PODS, ref);
  await server.close(0);
} finally {
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
