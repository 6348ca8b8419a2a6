import { type KubeObject, NAMESPACES } from '../../../src/kube/types.ts';
import type { Json } from '../../../src/lib/json.ts';
import type { Line, Lines } from '../api/lines.ts';
import { FAIR, Link } from '../api/network.ts';
import { carryOut } from '../api/request.ts';
import { ApiServer } from '../api/server.ts';
import { Chance } from '../clock/chance.ts';
import { ProcessClock } from '../clock/process-clock.ts';
import { VirtualTime } from '../clock/virtual-time.ts';
import { Keepers } from '../nodes/keepers.ts';
import { PodIndex } from '../nodes/pod-index.ts';
import { type Call, requestOf, type Side, type Snapshot, snapshotOf, type WatchLine } from './side.ts';
import { type KindName, TYPES } from './steps.ts';

/** Longer than anything that the model does by itself. */
const REST_MS = 60_000;

/** The model of the API server, with what runs in the cluster and without nodes. */
export class Modelled implements Side {
  readonly namespace = 'test';
  readonly #time = new VirtualTime();
  readonly #api: ApiServer;
  readonly #link: Link;

  constructor(addsFinalizer: boolean) {
    const time = this.#time;
    const chance = new Chance(1);
    const api = new ApiServer(time, chance, false);
    api.addsFinalizer = addsFinalizer;
    const pods = new PodIndex(api);
    void new Keepers({ api, time, chance, pods });
    const clock = new ProcessClock(time);
    this.#api = api;
    this.#link = new Link({ api, time, chance, clock, onStray: () => undefined });
    this.#link.weather = FAIR;
    api.create(NAMESPACES, { metadata: { name: this.namespace } });
  }

  async send(call: Call): Promise<{ status: number; body: Json }> {
    const { status, body } = carryOut(this.#api, requestOf(call));
    if (typeof body === 'string') return { status, body: JSON.parse(body) as Json };
    const object = body.value as KubeObject;
    const { metadata } = object;
    const managedFields = this.#api.managedFields(object);
    return {
      status,
      body: { ...object, metadata: { ...metadata, ...(managedFields.length > 0 && { managedFields }) } },
    };
  }

  async watch(path: string): Promise<{ status: number; lines: readonly WatchLine[] }> {
    const lines: WatchLine[] = [];
    const { signal } = new AbortController();
    const opening = this.#link.connection.streams.request({ method: 'GET', path, headers: {}, body: null, signal });
    await this.#time.advance(1_000);
    const { statusCode, body } = await opening;
    void this.#read(body as AsyncIterable<Lines>, lines);
    return { status: statusCode, lines };
  }

  async #read(stream: AsyncIterable<Lines>, into: WatchLine[]): Promise<void> {
    for await (const chunk of stream) {
      for (let at = 0; at < chunk.length; at += 2)
        into.push((chunk.subarray(at).toString() as Line).value as WatchLine);
    }
  }

  async rest(): Promise<Snapshot> {
    await this.#time.advance(REST_MS);
    const { namespace } = this;
    return snapshotOf(
      (Object.keys(TYPES) as KindName[]).map((kind) => [
        kind,
        this.#api.list<KubeObject>(TYPES[kind], namespace) as unknown as Json[],
      ]),
    );
  }

  async heard(): Promise<void> {
    await this.#time.advance(1_000);
  }
}
