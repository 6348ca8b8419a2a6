import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PODS, type Pod } from '../../../src/kube/types.ts';
import { busyboxLayer, importImage } from '../../../tools/lib/images/image.ts';
import { BUSYBOX_IMAGE } from '../../../tools/cluster/built/real-node.ts';
import { findStaticBusybox } from '../../../tools/lib/host/requirements.ts';
import { run } from '../../../tools/lib/shell.ts';
import { waitFor } from '../../../tools/lib/wait.ts';

const { kubeconfig, realNode, initPid, programs } = inject('cluster');
const namespace = `local-${randomBytes(4).toString('hex')}`;

async function busyboxPath(): Promise<string> {
  const path = await findStaticBusybox();
  if (path === undefined) throw new Error('a real node runs, so its tools are here');
  return path;
}

/** A pod that answers `hello` on port 80 from a file on its volume, holding one of the node's GPUs. */
function podOf(name: string, image: string): Pod {
  return {
    metadata: { name, namespace },
    spec: {
      nodeName: realNode ?? '',
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'main',
          image,
          command: ['sh', '-c', 'echo hello > /data/index.html; exec httpd -f -p 80 -h /data'],
          readinessProbe: { tcpSocket: { port: 80 }, periodSeconds: 1 },
          resources: { limits: { 'nvidia.com/gpu': '1' } },
          volumeMounts: [{ name: 'data', mountPath: '/data' }],
        },
      ],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
    },
  };
}

describe.runIf(realNode !== undefined)('the real node', () => {
  let client: KubeClient;

  beforeAll(async () => {
    client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
    await client.create(NAMESPACES, { metadata: { name: namespace } });
    const resources = { requests: { storage: '1Gi' } };
    const metadata = { name: 'data', namespace };
    await client.create(PERSISTENT_VOLUME_CLAIMS, { metadata, spec: { accessModes: ['ReadWriteOnce'], resources } });
  });

  afterAll(async () => {
    await client.delete(NAMESPACES, { name: namespace });
    await client.close();
  });

  async function untilReady(name: string): Promise<Pod> {
    const ready = await waitFor(
      async () => {
        const pod = await client.get(PODS, { namespace, name });
        return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') && pod;
      },
      { timeout: 90_000 },
    );
    if (ready === undefined) throw new Error(JSON.stringify((await client.get(PODS, { namespace, name })).status));
    return ready;
  }

  it('runs a container with a GPU and a volume, that this host reaches and can exec into', async () => {
    await client.create(PODS, podOf('real', BUSYBOX_IMAGE));
    const { status } = await untilReady('real');

    const socket = connect(80, status?.podIP ?? '');
    socket.end('GET / HTTP/1.0\r\n\r\n');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(socket, 'close');
    expect(Buffer.concat(chunks).toString()).toMatch(/200 OK[^]*hello\n$/);

    const kubectl = ['--kubeconfig', kubeconfig, '-n', namespace];
    const exec = await run(join(programs ?? '', 'kubectl'), [
      ...kubectl,
      'exec',
      'real',
      '--',
      'sh',
      '-c',
      'cat /data/index.html; exit 7',
    ]);
    expect(exec.stdout).toBe('hello\n');
    expect(exec.stderr).toContain('exit code 7');
  });

  it('runs an image that was made here', async () => {
    const reference = `localhost/${namespace}:1`;
    const content = Buffer.from('from a file of our own\n');
    if (initPid === undefined || programs === undefined) throw new Error('a real node has both');
    const layer = [...(await busyboxLayer(await busyboxPath())), { name: 'ours', type: 'file', content } as const];
    await importImage({ initPid, programs }, { reference, layer, entrypoint: ['/bin/cat'], cmd: ['/ours'] });
    const containers = [{ name: 'main', image: reference }];
    await client.create(PODS, {
      metadata: { name: 'ours', namespace },
      spec: { nodeName: realNode ?? '', restartPolicy: 'Never', containers },
    });
    const ended = await waitFor(
      async () => (await client.get(PODS, { namespace, name: 'ours' })).status?.phase === 'Succeeded',
      { timeout: 90_000 },
    );
    expect(ended).toBe(true);
    const logs = await run(join(programs, 'kubectl'), ['--kubeconfig', kubeconfig, '-n', namespace, 'logs', 'ours']);
    expect(logs.stdout).toBe(content.toString());
  });
});
