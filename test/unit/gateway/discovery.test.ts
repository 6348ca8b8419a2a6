import { describe, expect, it } from 'vitest';
import { readPool, readServer } from '../../../src/gateway/discovery/server-spec.ts';
import { poolTargetsOf, targetsOf } from '../../../src/gateway/discovery/targets.ts';
import type { InferencePool } from '../../../src/kube/inference-pools.ts';
import type { EndpointSlice, Namespace, Pod, Service } from '../../../src/kube/types.ts';
import { modelPod } from '../../support/model-cluster.ts';
import { eventually, gatewayTo, post } from '../../support/model-gateway.ts';

const OWN = 'berth-system';

const platform: Namespace = {
  metadata: {
    name: 'platform',
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { 'berth.dev/shared-models': 'true' },
  },
};
const NAMESPACES = {
  own: OWN,
  mayScale: () => false,
  find: (name: string) => (name === 'platform' ? platform : { metadata: { name } }),
};

function service(annotations: Record<string, string> = {}, namespace = 'team'): Service {
  return {
    metadata: { name: 'llm', namespace, uid: 'svc', labels: { 'berth.dev/model-server': 'true' }, annotations },
    spec: {
      ports: [
        { name: 'metrics', port: 9090 },
        { name: 'api', port: 80 },
      ],
    },
  };
}

describe('readServer', () => {
  it.each([
    ['berth.dev/model-path-prefix', `${'/'.repeat(250_000)}x`],
    ['berth.dev/model-path-prefix', `/${'a'.repeat(256)}`],
    ['berth.dev/model-aliases', 'a,'.repeat(125_000)],
    ['berth.dev/model-engine', 'vllm'.padEnd(257)],
    ['berth.dev/model-port', ' '.repeat(250_000)],
    ['berth.dev/model-credential', 'x'.repeat(257)],
  ])('leaves %s out that is too long', (name, value) => {
    const server = readServer(service({ [name]: value }), NAMESPACES);
    expect(server).toEqual(expect.objectContaining({ problems: [expect.stringContaining(`${name} is longer than`)] }));
    for (const field of ['prefix', 'engine', 'port', 'credential']) expect(server).not.toHaveProperty(field);
    expect(server?.aliases).toEqual([]);
  });

  it('takes lists of as many names as it reads', () => {
    const names = Array.from({ length: 64 }, (_, at) => `${at}`.padEnd(256, 'a'));
    const aliases = names.map((name) => `${name}=${name}`).join(',');
    const server = readServer(service({ 'berth.dev/model-aliases': aliases }), NAMESPACES);
    expect(server).toMatchObject({ problems: [], aliases: { length: 64 } });
    const hosts = Array.from({ length: 64 }, (_, at) => `host-${at}.${'a'.repeat(60)}.example.com`).join(',');
    const media = readServer(service({ 'berth.dev/model-media-hosts': hosts }), NAMESPACES);
    expect(media).toMatchObject({ problems: [], mediaHosts: { length: 64 } });
  });

  it('takes only labelled Services that are not being deleted', () => {
    expect(readServer({ ...service(), metadata: { ...service().metadata, labels: {} } }, NAMESPACES)).toBeUndefined();
    const leaving = { ...service().metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
    expect(readServer({ ...service(), metadata: leaving }, NAMESPACES)).toBeUndefined();
    expect(readServer(service(), NAMESPACES)).toMatchObject({ namespace: 'team', name: 'llm', aliases: [] });
  });

  it('shares the Services of its own namespace, and those of namespaces that the operator lets share', () => {
    const shared = { 'berth.dev/shared': 'true' };
    expect(readServer(service({}, OWN), NAMESPACES)?.sharedRank).toBe(-1);
    expect(readServer(service(shared, 'platform'), NAMESPACES)?.sharedRank).toBe(Date.UTC(2026, 0));
    expect(readServer(service({}, 'platform'), NAMESPACES)).not.toHaveProperty('sharedRank');
  });

  it('shares no Service of a tenant, whatever it says, and says why', () => {
    const server = readServer(service({ 'berth.dev/shared': 'true' }), NAMESPACES);
    expect(server).not.toHaveProperty('sharedRank');
    expect(server?.problems).toEqual([
      'berth.dev/shared needs the label berth.dev/shared-models=true on the namespace',
    ]);
  });

  it('reads the annotations', () => {
    const server = readServer(
      service({
        'berth.dev/model-port': 'api',
        'berth.dev/model-path-prefix': '/openai/',
        'berth.dev/model-aliases': 'gpt-4o, small = org/tiny',
        'berth.dev/model-engine': 'vLLM',
        'berth.dev/model-dialects': 'chat,messages',
      }),
      NAMESPACES,
    );
    expect(server).toMatchObject({
      port: 'api',
      prefix: '/openai',
      aliases: [{ alias: 'gpt-4o' }, { alias: 'small', model: 'org/tiny' }],
      engine: 'vllm',
      dialects: ['chat', 'messages'],
      problems: [],
    });
  });

  it.each([
    ['berth.dev/model-path-prefix', '/a/../b'],
    ['berth.dev/model-path-prefix', 'http://elsewhere'],
    ['berth.dev/model-path-prefix', '/a?b'],
    ['berth.dev/model-engine', 'gpt'],
    ['berth.dev/model-dialects', 'chat,soap'],
    ['berth.dev/model-aliases', 'a=b=c'],
    ['berth.dev/model-aliases', '=x'],
  ])('ignores %s: %s and says so', (name, value) => {
    const server = readServer(service({ [name]: value }), NAMESPACES);
    expect(server?.problems).toHaveLength(1);
    expect(server).toMatchObject({ aliases: [] });
    expect(server).not.toHaveProperty('prefix');
    expect(server).not.toHaveProperty('engine');
    expect(server).not.toHaveProperty('dialects');
  });
});

function inferencePool(spec: InferencePool['spec'] = {}, annotations: Record<string, string> = {}): InferencePool {
  const labels = { 'berth.dev/model-server': 'true' };
  return {
    metadata: { name: 'pool', namespace: 'team', uid: 'pool', labels, annotations },
    spec: { selector: { matchLabels: { app: 'vllm' } }, targetPorts: [{ number: 8000 }], ...spec },
  };
}

function readyPod(name: string, ip: string, { status = 'True', namespace = 'team' } = {}): Pod {
  const pod = modelPod(namespace, name, ip);
  const conditions = [{ type: 'Ready', status }];
  return { metadata: { ...pod.metadata, labels: { app: 'vllm' } }, status: { ...pod.status, conditions } };
}

function poolTargets(spec: InferencePool['spec'], pods: Pod[]) {
  const pool = inferencePool(spec);
  const server = readPool(pool, NAMESPACES);
  if (server === undefined) throw new Error('not a server');
  return poolTargetsOf(server, pool, pods).targets;
}

describe('an InferencePool', () => {
  it('has each of its ports at each pod that it selects', () => {
    const other = modelPod('team', 'other', '10.0.0.9');
    const pods = [readyPod('p', '10.0.0.5'), other, readyPod('q', 'fd00::6', { status: 'False' })];
    expect(poolTargets({ targetPorts: [{ number: 8000 }, { number: 8001 }] }, pods)).toMatchObject([
      { key: 'pool@uid-team-p:8000', place: 'team@uid-team-p:8000', origin: 'http://10.0.0.5:8000', available: true },
      { origin: 'http://10.0.0.5:8001', available: true },
      { origin: 'http://[fd00::6]:8000', available: false },
      { origin: 'http://[fd00::6]:8001', available: false },
    ]);
  });

  it('has no pod without an address, and sends nothing new to one that is being deleted', () => {
    const { metadata, status } = readyPod('p', '10.0.0.5');
    expect(poolTargets({}, [{ metadata, status: { ...status, podIP: '' } }])).toEqual([]);
    const leaving: Pod = {
      metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
      ...(status && { status }),
    };
    expect(poolTargets({}, [leaving])).toMatchObject([{ available: false }]);
  });

  it('selects nothing without labels, and is not called where it wants another protocol', () => {
    const pods = [readyPod('p', '10.0.0.5')];
    expect(poolTargets({ selector: {} }, pods)).toEqual([]);
    expect(poolTargets({ appProtocol: 'kubernetes.io/h2c' }, pods)).toEqual([]);
    expect(poolTargets({ appProtocol: 'http' }, pods)).toHaveLength(1);
    expect(readPool(inferencePool({ appProtocol: 'kubernetes.io/h2c' }), NAMESPACES)?.problems).toHaveLength(1);
  });

  it('has the annotations of Services but those of ports and scaling, and says so', () => {
    const annotations = {
      'berth.dev/model-aliases': 'a',
      'berth.dev/model-port': '9000',
      'berth.dev/scale-target': 'deployments.apps/x',
      'berth.dev/shared': 'true',
    };
    const server = readPool(inferencePool({}, annotations), { ...NAMESPACES, mayScale: () => true });
    expect(server).toMatchObject({ aliases: [{ alias: 'a' }] });
    for (const field of ['port', 'scale', 'sharedRank']) expect(server).not.toHaveProperty(field);
    expect(server?.problems).toEqual([
      'berth.dev/shared needs the label berth.dev/shared-models=true on the namespace',
      'berth.dev/model-port counts on Services only',
      'berth.dev/scale-target counts on Services only',
    ]);
  });

  it('that selects the pod of a Service does not count it again, and keeps it when the Service goes', async () => {
    const { gateway, engines, close } = await gatewayTo({ engine: 'vllm' });
    try {
      const { cluster } = gateway;
      const number = engines[0]?.port ?? 0;
      const { metadata, spec } = inferencePool({ targetPorts: [{ number }] }, { 'berth.dev/model-aliases': 'pooled' });
      cluster.inferencePools.put({ metadata: { ...metadata, namespace: OWN }, ...(spec && { spec }) });
      cluster.pods.put(readyPod(`tiny-server-${number}`, '127.0.0.1', { namespace: OWN }));
      await gateway.ready('pooled', 1);
      await gateway.ready('tiny', 1);
      const call = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] };
      cluster.remove(OWN, 'tiny-server');
      await gateway.ready('tiny', 1);
      expect((await post(gateway, 'chat/completions', call)).status).toBe(200);
      cluster.inferencePools.remove(`${OWN}/pool`);
      await eventually(async () => expect((await post(gateway, 'chat/completions', call)).status).toBe(404));
    } finally {
      await close();
    }
  });
});

type Endpoint = NonNullable<EndpointSlice['endpoints']>[number];

function slice(
  endpoint: Partial<Endpoint>,
  ports: EndpointSlice['ports'] = [{ name: 'api', port: 8000 }],
): EndpointSlice {
  const whole: Endpoint = {
    addresses: ['10.0.0.5'],
    conditions: { ready: true },
    targetRef: { kind: 'Pod', name: 'p', uid: 'uid-team-p' },
    ...endpoint,
  };
  return { metadata: { name: 's', namespace: 'team' }, addressType: 'IPv4', ports, endpoints: [whole] };
}

function targets(
  slices: EndpointSlice[],
  options: { pods?: Pod[]; annotations?: Record<string, string>; namespace?: string } = {},
) {
  const { pods = [modelPod('team', 'p', '10.0.0.5')], annotations = {}, namespace = 'team' } = options;
  const labelled = service(annotations, namespace);
  const server = readServer(labelled, NAMESPACES);
  if (server === undefined) throw new Error('not a server');
  const pod = (key: string) => pods.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === key);
  return targetsOf({ server, service: labelled, slices, pod, trustedNamespace: OWN });
}

describe('targetsOf', () => {
  it('follows ready pods', () => {
    expect(targets([slice({})])).toMatchObject([
      { key: 'svc@uid-team-p:8000', origin: 'http://10.0.0.5:8000', available: true },
    ]);
  });

  it.each([[{ ready: false }], [{ ready: true, serving: false }], [{ ready: true, serving: true, terminating: true }]])(
    'sends nothing new to %o',
    (conditions) => {
      expect(targets([slice({ conditions })])).toMatchObject([{ available: false }]);
    },
  );

  it('sends nothing new to a pod that is being deleted, before its slice says so', () => {
    const pod = modelPod('team', 'p', '10.0.0.5');
    const leaving: Pod = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(targets([slice({})], { pods: [leaving] })).toMatchObject([{ available: false }]);
  });

  it('ignores an address that the pod in the slice does not have', () => {
    expect(targets([slice({ addresses: ['169.254.169.254'] })])).toEqual([]);
    expect(targets([slice({})], { pods: [] })).toEqual([]);
    expect(targets([slice({ targetRef: { kind: 'Pod', name: 'p', uid: 'another' } })])).toEqual([]);
    expect(targets([slice({ targetRef: undefined })])).toEqual([]);
  });

  it.each(['Succeeded', 'Failed'])('ignores a pod that has %s: its address may be another pod now', (phase) => {
    const { metadata, status } = readyPod('p', '10.0.0.5');
    const over: Pod = { metadata, status: { ...status, phase } };
    expect(targets([slice({})], { pods: [over] })).toEqual([]);
    expect(poolTargets({}, [over])).toEqual([]);
  });

  it('accepts addresses without a pod in its own namespace', () => {
    const external = slice({ targetRef: undefined });
    expect(targets([external], { namespace: OWN })).toMatchObject([{ origin: 'http://10.0.0.5:8000' }]);
  });

  it('chooses the port by annotation, else `http`, else the first of the Service', () => {
    const ports = [
      { name: 'api', port: 8000 },
      { name: 'metrics', port: 9100 },
    ];
    const portFor = (value?: string) =>
      targets([slice({}, ports)], { annotations: value === undefined ? {} : { 'berth.dev/model-port': value } })[0]
        ?.origin;
    expect(portFor('api')).toBe('http://10.0.0.5:8000');
    expect(portFor('80')).toBe('http://10.0.0.5:8000');
    expect(portFor('9100')).toBe('http://10.0.0.5:9100');
    expect(portFor()).toBe('http://10.0.0.5:9100');
    expect(portFor('nothing')).toBeUndefined();
    expect(targets([slice({}, [...ports, { name: 'http', port: 8080 }])])).toMatchObject([
      { origin: 'http://10.0.0.5:8080' },
    ]);
  });

  it('writes IPv6 addresses in brackets and lists a pod in two slices once', () => {
    const pod = modelPod('team', 'p', 'fd00::5');
    const six = slice({ addresses: ['fd00::5'] });
    const draining = slice({ addresses: ['fd00::5'], conditions: { ready: false } });
    expect(targets([six, draining], { pods: [pod] })).toMatchObject([
      { origin: 'http://[fd00::5]:8000', available: true },
    ]);
  });
});

describe('Services', () => {
  it('are read once for each version, however often the catalogue is built', async () => {
    const { gateway, engines, close } = await gatewayTo({ engine: 'vllm' });
    try {
      const { cluster } = gateway;
      const { metadata, spec } = service({}, 'team');
      let reads = 0;
      const watched = {
        ...metadata,
        get annotations() {
          reads += 1;
          return { 'berth.dev/model-aliases': 'a' };
        },
      };
      const put = (): void => cluster.services.put({ metadata: watched, ...(spec && { spec }) });
      put();
      const ports = engines.map(({ port }) => port);
      const serve = (name: string): Promise<void> => {
        cluster.serve({ name, annotations: { 'berth.dev/model-aliases': name }, ports });
        return gateway.ready(name);
      };
      for (const name of ['b', 'c', 'd']) await serve(name);
      expect(reads).toBe(1);
      cluster.letShare('team');
      await serve('e');
      expect(reads).toBe(2);
    } finally {
      await close();
    }
  });
});
