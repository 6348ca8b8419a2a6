import type { InferencePool } from '../../src/kube/inference-pools.ts';
import type { ModelServer, ModelServerSpec } from '../../src/resources/model-servers/model-server.ts';
import type { EndpointSlice, Namespace, Pod, Service } from '../../src/kube/types.ts';
import { FakeStore } from './fake-store.ts';

export interface ServerOptions {
  name: string;
  namespace?: string;
  annotations?: Record<string, string>;
  /** One pod each, at 127.0.0.1. */
  ports: readonly number[];
}

/** The stores that discovery reads, with a short way to fill them. */
export class ModelCluster {
  readonly services = new FakeStore<Service>();
  readonly slices = new FakeStore<EndpointSlice>();
  readonly pods = new FakeStore<Pod>();
  readonly namespaces = new FakeStore<Namespace>();
  readonly inferencePools = new FakeStore<InferencePool>();
  readonly modelServers = new FakeStore<ModelServer>();

  /** Adds or replaces a labelled Service with one ready pod per port. */
  serve({ name, namespace = 'berth-system', annotations = {}, ports }: ServerOptions): void {
    const labels = { 'berth.dev/model-server': 'true' };
    this.services.put({
      metadata: { name, namespace, uid: `svc-${namespace}-${name}`, labels, annotations },
      spec: { ports: [{ name: 'http', port: 80 }] },
    });
    for (const port of ports) {
      const pod = `${name}-${port}`;
      this.pods.put(modelPod(namespace, pod));
      this.slice({ namespace, service: name, pod, port });
    }
  }

  /** Adds or replaces a server outside. */
  serveOutside(
    name: string,
    spec: Partial<ModelServerSpec> & Pick<ModelServerSpec, 'baseURL' | 'models'>,
    namespace = 'berth-system',
  ): void {
    this.modelServers.put({
      metadata: { name, namespace, uid: `outside-${namespace}-${name}` },
      spec: { dialects: ['chat'], ...spec },
    });
  }

  /** Sets the conditions of one pod's endpoint. */
  slice(options: { namespace?: string; service: string; pod: string; port: number; conditions?: object }): void {
    const {
      namespace = 'berth-system',
      service,
      pod,
      port,
      conditions = { ready: true, serving: true, terminating: false },
    } = options;
    this.slices.put({
      metadata: { name: `${pod}-slice`, namespace, labels: { 'kubernetes.io/service-name': service } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port }],
      endpoints: [
        {
          addresses: ['127.0.0.1'],
          conditions,
          targetRef: { kind: 'Pod', name: pod, namespace, uid: `uid-${namespace}-${pod}` },
        },
      ],
    });
  }

  /** Lets the Services of a namespace share their models. */
  letShare(name: string, creationTimestamp = '2026-01-01T00:00:00Z'): void {
    this.namespaces.put({ metadata: { name, creationTimestamp, labels: { 'berth.dev/shared-models': 'true' } } });
  }

  /** The pod of a port is gone. */
  lose({ name, port, namespace = 'berth-system' }: { name: string; port: number; namespace?: string }): void {
    this.slices.remove(`${namespace}/${name}-${port}-slice`);
    this.pods.remove(`${namespace}/${name}-${port}`);
  }

  remove(namespace: string, name: string): void {
    this.services.remove(`${namespace}/${name}`);
  }
}

export function modelPod(namespace: string, name: string, ip = '127.0.0.1'): Pod {
  return {
    metadata: { name, namespace, uid: `uid-${namespace}-${name}` },
    status: { podIP: ip, podIPs: [{ ip }] },
  };
}
