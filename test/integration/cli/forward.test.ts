import { delimiter } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { ForwardedPort } from '../../../src/cli/kube/forward.ts';
import { Kubectl } from '../../../src/cli/kube/kubectl.ts';
import { PODS, SERVICES } from '../../../src/kube/types.ts';
import { BUSYBOX_IMAGE } from '../../../tools/cluster/built/real-node.ts';
import { describeWith } from '../../support/needs.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

let space: TestNamespace;

beforeAll(async () => {
  space = await testNamespace();
});
afterAll(() => space[Symbol.asyncDispose]());

async function serve(name: string): Promise<void> {
  const labels = { app: 'served' };
  await space.client.create(PODS, {
    metadata: { name, namespace: space.name, labels },
    spec: {
      nodeName: inject('cluster').realNode ?? '',
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'main',
          image: BUSYBOX_IMAGE,
          imagePullPolicy: 'Never',
          command: ['sh', '-c', `mkdir /tmp/www; echo ${name} >/tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www`],
          ports: [{ name: 'http', containerPort: 8080 }],
        },
      ],
    },
  });
  const ref = { namespace: space.name, name };
  await waitFor(`pod ${name}`, async () => (await space.client.get(PODS, ref)).status?.phase === 'Running', 60_000);
}

describeWith('real node')('the forward of kubectl berth', () => {
  it('says of each connection that it is its own, and goes on with the next pod', { timeout: 180_000 }, async () => {
    const { kubeconfig, programs } = inject('cluster');
    process.env['PATH'] = [programs, process.env['PATH']].filter(Boolean).join(delimiter);
    await serve('one');
    const ports = [{ name: 'http', port: 80, targetPort: 'http' }];
    await space.client.create(SERVICES, {
      metadata: { name: 'served', namespace: space.name },
      spec: { selector: { app: 'served' }, ports },
    });
    const kubectl = new Kubectl(['--kubeconfig', kubeconfig]);
    const target = { namespace: space.name, service: 'served', port: 80 };
    const port = await ForwardedPort.open(kubectl, target, (ms) => sleep(ms));
    try {
      // A pod that ends may leave a request without an answer, as any server may.
      const said = async (): Promise<string> => (await fetch(port.url, { signal: AbortSignal.timeout(10_000) })).text();
      await waitFor('the program in the pod', async () => (await said().catch(() => '')) === 'one\n');
      expect(await Promise.all([said(), said(), said()])).toEqual(['one\n', 'one\n', 'one\n']);
      await serve('two');
      await space.client.delete(PODS, { namespace: space.name, name: 'one' });
      await waitFor('the next pod', async () => (await said().catch(() => '')) === 'two\n', 60_000);
    } finally {
      await port.close();
    }
  });
});
