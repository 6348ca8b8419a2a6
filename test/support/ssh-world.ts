import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { inject } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { loadKubeConfig, type KubeConnection } from '../../src/kube/config/config.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { Informer } from '../../src/kube/watch/reflector.ts';
import { createKubeClient } from '../../src/kube/client/rest-client.ts';
import type { IndexFunctions } from '../../src/kube/watch/store.ts';
import { INDEXES } from '../../src/caches/indexes.ts';
import { NAMESPACES, PODS, type KubeObject, type Pod, type ResourceType } from '../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { SSH_KEYS, type SshKey } from '../../src/resources/ssh-key.ts';
import { TOOLS_BIN, toolsVolume } from '../../src/resources/pod/tools-volume.ts';
import type { AuditRecord, Way } from '../../src/ssh/audit.ts';
import { StoreDirectory, type InstanceDirectory } from '../../src/ssh/directory.ts';
import { loadHostKeys, knownHostsLine } from '../../src/ssh/login/host-key.ts';
import { DEFAULT_CEILINGS } from '../../src/resources/tenants/ceilings.ts';
import { SshServer, type SshServerDeps } from '../../src/ssh/server.ts';
import { importSshImages, TOOLS } from './ssh-images.ts';
import { waitFor } from './wait-for.ts';
import { Tenants } from '../../src/access/tenants.ts';
import { newEd25519Key } from '../../src/ssh/login/ed25519-key.ts';

export interface InstanceOptions {
  image: string;
  /** Pod-level security context. */
  securityContext?: NonNullable<NonNullable<Pod['spec']>['securityContext']>;
  tools?: boolean;
  sshKeyIds?: number[];
  idleTimeout?: string;
  /** Published login; the bare name unless given, as older versions published it. */
  login?: string;
}

/** A namespace on the real node with instances, keys and a gateway: what the tests log in to. */
export interface SshWorld {
  client: KubeClient;
  connection: KubeConnection;
  directory: InstanceDirectory;
  namespace: string;
  /** Berth's own, with the host key. */
  home: string;
  folder: string;
  /** The gateway that reaches pods. */
  server: SshServer;
  /** That one, and one for which the direct way is closed. */
  gateways: Record<Way, SshServer>;
  records: AuditRecord[];
  /** Makes a key pair, registers it, and returns the path of the private half. */
  addKey(name: string): Promise<string>;
  /** Registers a public key that the caller has. */
  addPublicKey(name: string, publicKey: string): Promise<void>;
  removeKey(name: string): Promise<void>;
  addInstance(name: string, options: InstanceOptions): Promise<void>;
  /** Starts a gateway of its own, with another endpoint if given; `configOf` it for clients. */
  startGateway(overrides?: Partial<SshServerDeps>): Promise<SshServer>;
  /** Writes an ssh_config for a gateway and returns its path: strict host key checking, one identity. */
  configOf(server: { address: { port: number } }, identity: string): string;
  end(): Promise<void>;
}

function podOf(name: string, namespace: string, options: InstanceOptions): Pod {
  const { volume, initContainer, mount } = toolsVolume(TOOLS);
  const tools = options.tools !== false;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: {
      nodeName: inject('cluster').realNode ?? '',
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      ...(options.securityContext === undefined ? {} : { securityContext: options.securityContext }),
      ...(tools ? { initContainers: [initContainer], volumes: [volume] } : {}),
      containers: [
        {
          name: 'main',
          image: options.image,
          imagePullPolicy: 'Never',
          command: tools
            ? [`${TOOLS_BIN}/tini`, '--', `${TOOLS_BIN}/busybox`, 'sleep', '2147483647']
            : ['sleep', '2147483647'],
          ...(tools ? { volumeMounts: [mount] } : {}),
        },
      ],
    },
  };
}

/** Both ways that the bytes of a session may take. */
export const WAYS: readonly Way[] = ['direct', 'exec'];

/** Each of these by each way. */
export function byEachWay(instances: readonly string[]): [string, Way][] {
  return WAYS.flatMap((way) => instances.map((instance): [string, Way] => [instance, way]));
}

async function noRoute(): Promise<never> {
  throw new Error('No route leads to pods.');
}

/** Builds the world; call `end` when done. */
export async function sshWorld(): Promise<SshWorld> {
  const { kubeconfig, initPid, programs } = inject('cluster');
  if (initPid === undefined || programs === undefined) throw new Error('The SSH tests need the real node.');
  const connection = await loadKubeConfig({ kubeconfig });
  const clock = systemClock();
  const client = createKubeClient(connection, { clock });
  const log = pino({ level: process.env['BERTH_TEST_LOG'] ?? 'silent' });
  const stop = new AbortController();
  const namespace = `ssh-${randomBytes(4).toString('hex')}`;
  const folder = mkdtempSync(join(tmpdir(), 'berth-ssh-'));
  await importSshImages({ initPid, programs });
  const home = `${namespace}-berth`;
  for (const name of [namespace, home]) await client.create(NAMESPACES, { metadata: { name } });
  const informers: Informer<never>[] = [];
  const inform = <T extends KubeObject>(type: ResourceType<T>, indexers?: IndexFunctions<T>): Informer<T> => {
    const informer = new Informer({ client, type, indexers, namespace, clock, random: Math.random, log });
    informers.push(informer as unknown as Informer<never>);
    return informer;
  };
  const instances = inform(GPU_INSTANCES, INDEXES.instances);
  const [keys, pods] = [inform(SSH_KEYS, INDEXES.sshKeys), inform(PODS)];
  const namespaces = new Informer({ client, type: NAMESPACES, clock, random: Math.random, log });
  informers.push(namespaces as unknown as Informer<never>);
  const runs = informers.map((informer) => informer.run(stop.signal));
  await Promise.all(informers.map(({ store }) => store.synced));
  const tenants = new Tenants(namespaces.store, { own: home, requireLabel: false });
  const stores = { instances: instances.store, keys: keys.store, pods: pods.store };
  const directory = new StoreDirectory({ ...stores, tenants });
  const hostKeys = await loadHostKeys(client, home);
  const records: AuditRecord[] = [];
  const servers: SshServer[] = [];
  const startGateway = async (overrides: Partial<SshServerDeps> = {}): Promise<SshServer> => {
    const server = new SshServer({
      endpoint: connection,
      directory,
      hostKey: hostKeys.current,
      listen: { host: '127.0.0.1', port: 0 },
      log,
      audit: (record) => records.push(record),
      activity: { began: () => () => undefined },
      countLogin: () => undefined,
      ceilingsOf: () => DEFAULT_CEILINGS,
      clock,
      ...overrides,
    });
    await server.listen();
    servers.push(server);
    return server;
  };
  const server = await startGateway();
  const gateways = { direct: server, exec: await startGateway({ dial: noRoute }) };
  const addPublicKey = async (name: string, publicKey: string): Promise<void> => {
    await client.create<SshKey>(SSH_KEYS, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'SSHKey',
      metadata: { name, namespace },
      spec: { publicKey, displayName: name },
    });
    await waitFor('the key in the cache', () => keys.store.get(`${namespace}/${name}`));
  };
  return {
    client,
    connection,
    directory,
    namespace,
    home,
    folder,
    server,
    gateways,
    records,
    startGateway,
    addKey: async (name) => {
      const pair = newEd25519Key('');
      const path = join(folder, name);
      writeFileSync(path, pair.private, { mode: 0o600 });
      await addPublicKey(name, pair.public);
      return path;
    },
    addPublicKey,
    removeKey: (name) => client.delete(SSH_KEYS, { namespace, name }),
    addInstance: async (name, options) => {
      await client.create(PODS, podOf(name, namespace, options));
      await client.create<GpuInstance>(GPU_INSTANCES, {
        apiVersion: 'berth.dev/v1alpha1',
        kind: 'GPUInstance',
        metadata: { name, namespace },
        spec: { gpu: { count: 1 }, sshKeyIds: options.sshKeyIds ?? [], idleTimeout: options.idleTimeout },
      } as unknown as GpuInstance);
      const ref = { namespace, name };
      const ssh = { host: '127.0.0.1', port: 1, user: options.login ?? name };
      const status = { podName: name, ssh };
      await client.patch(GPU_INSTANCES, ref, { status }, { type: 'merge', subresource: 'status' });
      await waitFor('a running container', () => directory.find({ instance: name, namespace })?.target);
    },
    configOf: (gateway, identity) => {
      const { port } = gateway.address;
      const known = join(folder, `known-${port}`);
      writeFileSync(known, `${knownHostsLine(hostKeys, '127.0.0.1', port)}\n`);
      const path = join(folder, `config-${port}-${randomBytes(3).toString('hex')}`);
      const lines = [
        `Port ${port}`,
        `IdentityFile ${identity}`,
        'IdentitiesOnly yes',
        'IdentityAgent none',
        `UserKnownHostsFile ${known}`,
        'GlobalKnownHostsFile none',
        'StrictHostKeyChecking yes',
        'BatchMode yes',
        'LogLevel ERROR',
      ];
      writeFileSync(path, `Host *\n  ${lines.join('\n  ')}\n`);
      return path;
    },
    end: async () => {
      await Promise.all(servers.map((each) => each.close(0)));
      stop.abort();
      await Promise.all(runs);
      // A later controller would give them GPUs of the next test while the namespace goes.
      for (const { metadata } of (await client.list(GPU_INSTANCES, { namespace })).items) {
        await client.delete(GPU_INSTANCES, { namespace, name: metadata.name });
      }
      for (const name of [namespace, home]) await client.delete(NAMESPACES, { name });
      await client.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
