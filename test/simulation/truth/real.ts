import { randomBytes } from 'node:crypto';
import type { KubeConnection } from '../../../src/kube/config/connection.ts';
import { pathOf } from '../../../src/kube/client/client.ts';
import { isObject, type Json, sameJson } from '../../../src/lib/json.ts';
import { waitFor } from '../../../tools/lib/wait.ts';
import { type Call, requestOf, type Side, type Snapshot, snapshotOf, type Watched, type WatchLine } from './side.ts';
import { nameOf } from './outcome.ts';
import { type KindName, markerOf, TYPES } from './steps.ts';

/** So long the controllers of Kubernetes may take; what is another than expected then is a difference. */
const REST_MS = 15_000;
/** A namespace is emptied some seconds after it was deleted. */
const END_MS = 25_000;
const INTERVAL_MS = 20;

const KINDS = Object.keys(TYPES) as KindName[];

/** A namespace of a real API server. */
export class Real implements Side {
  readonly namespace = `truth-${randomBytes(5).toString('hex')}`;
  readonly #connection: KubeConnection;
  readonly #reading = new AbortController();
  #canaries = 0;
  #isEnding = false;

  private constructor(connection: KubeConnection) {
    this.#connection = connection;
  }

  static async open(connection: KubeConnection): Promise<Real> {
    const real = new Real(connection);
    const { namespace } = real;
    await real.#write('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    });
    // Pods are made for it, and it is made by a controller.
    await waitFor(
      async () =>
        (await real.send({ method: 'GET', path: `/api/v1/namespaces/${namespace}/serviceaccounts/default` })).status ===
        200,
      {
        timeout: 30_000,
        interval: INTERVAL_MS,
      },
    );
    return real;
  }

  async send(call: Call): Promise<{ status: number; body: Json }> {
    const request = requestOf(call);
    if (call.method === 'DELETE' && call.path.endsWith(`/namespaces/${this.namespace}`)) this.#isEnding = true;
    const credentials = await this.#connection.headers({ refresh: false });
    const { statusCode, body } = await this.#connection.calls.request({
      ...request,
      headers: { ...request.headers, ...credentials },
      // undici closes the connection after a DELETE with a body, since not every server reads it. The API server does.
      ...(call.method === 'DELETE' && { reset: false }),
    });
    return { status: statusCode, body: JSON.parse(await body.text()) as Json };
  }

  #write(method: string, path: string, body: Json): Promise<{ status: number; body: Json }> {
    return this.send({
      method,
      path,
      body,
      contentType: method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
    });
  }

  async watch(path: string): Promise<{ status: number; lines: readonly WatchLine[] }> {
    const lines: WatchLine[] = [];
    const { signal } = this.#reading;
    const headers = await this.#connection.headers({ refresh: false });
    const { statusCode, body } = await this.#connection.streams.request({ method: 'GET', path, headers, signal });
    void this.#read(body, lines);
    return { status: statusCode, lines };
  }

  async #read(body: AsyncIterable<Buffer>, into: WatchLine[]): Promise<void> {
    let text = '';
    try {
      for await (const chunk of body) {
        const parts = `${text}${String(chunk)}`.split('\n');
        text = parts.pop() ?? '';
        into.push(...parts.map((line) => JSON.parse(line) as WatchLine));
      }
    } catch (error) {
      if (!this.#reading.signal.aborted) throw error;
    }
  }

  async rest(expected: Snapshot | undefined): Promise<Snapshot> {
    let snapshot = await this.#snapshot();
    const isThere = async (): Promise<boolean> => {
      snapshot = await this.#snapshot();
      return sameJson(snapshot, expected) && (await this.#isCounted());
    };
    await waitFor(isThere, { timeout: this.#isEnding ? END_MS : REST_MS, interval: INTERVAL_MS });
    await this.#collected();
    return this.#snapshot();
  }

  async #items(kind: KindName): Promise<Json[]> {
    const { body } = await this.send({ method: 'GET', path: pathOf(TYPES[kind], { namespace: this.namespace }) });
    return (body['items'] ?? []) as Json[];
  }

  async #snapshot(): Promise<Snapshot> {
    return snapshotOf(await Promise.all(KINDS.map(async (kind) => [kind, await this.#items(kind)] as const)));
  }

  /** Whether each quota says what it limits, and how many there are. */
  async #isCounted(): Promise<boolean> {
    const quotas = await this.#items('quota');
    if (quotas.length === 0) return true;
    const count = String((await this.#items('secret')).length);
    return quotas.every(({ status, spec }) => {
      const { hard = {}, used = {} } = (status ?? {}) as { hard?: Json; used?: Json };
      return sameJson(hard, (spec as Json)['hard']) && used['count/secrets'] === count;
    });
  }

  /** The garbage collector has done what it had to do before this: an owner goes after what it owns. */
  async #collected(): Promise<void> {
    this.#canaries += 1;
    const path = `/api/v1/namespaces/${this.namespace}/configmaps`;
    const name = `owner-${this.#canaries}`;
    const owner = await this.#write('POST', path, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
    // Nothing new is let into a namespace that ends.
    if (owner.status >= 300) return;
    const { uid } = owner.body['metadata'] as Json;
    const reference = { apiVersion: 'v1', kind: 'ConfigMap', name, uid, blockOwnerDeletion: true };
    await this.#write('POST', path, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `part-${this.#canaries}`, ownerReferences: [reference] },
    });
    await this.#write('DELETE', `${path}/${name}`, { propagationPolicy: 'Foreground' });
    await waitFor(async () => (await this.send({ method: 'GET', path: `${path}/${name}` })).status === 404, {
      timeout: REST_MS,
      interval: INTERVAL_MS,
    });
  }

  async heard(watches: readonly Watched[], expected: readonly number[] = []): Promise<void> {
    const markers = await Promise.all(watches.map(({ kind }, index) => this.#mark(kind, index)));
    const isHeard = (): boolean =>
      watches.every(({ lines }, index) => {
        const marker = markers[index];
        if (marker === undefined) return lines.length >= (expected[index] ?? 0);
        return lines.some(({ object }) => isObject(object['metadata']) && object['metadata']['name'] === marker);
      });
    await waitFor(isHeard, { timeout: REST_MS, interval: INTERVAL_MS });
  }

  /** Makes an object that a watch must tell of last; undefined where none may be made. */
  async #mark(kind: KindName, index: number): Promise<string | undefined> {
    const path = pathOf(TYPES[kind], { namespace: this.namespace });
    const { status, body } = await this.#write('POST', path, markerOf(kind, index));
    return status < 300 ? nameOf(body) : undefined;
  }

  /** Leaves nothing behind that somebody waits for. */
  async close(): Promise<void> {
    this.#reading.abort();
    for (const kind of KINDS) for (const item of await this.#items(kind)) await this.#force(kind, nameOf(item));
    await this.#write('DELETE', `/api/v1/namespaces/${this.namespace}`, {});
  }

  async #force(kind: KindName, name: string): Promise<void> {
    const path = pathOf(TYPES[kind], { namespace: this.namespace, name });
    await this.#write('PATCH', path, { metadata: { finalizers: null } });
    await this.#write('DELETE', path, { gracePeriodSeconds: 0 });
  }
}
