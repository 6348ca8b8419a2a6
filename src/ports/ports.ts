import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import type { Clock } from '../lib/clock.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf, type Pod } from '../kube/types.ts';
import type { StreamEndpoint } from '../kube/streams/websocket.ts';
import type { GpuInstance } from '../resources/gpu-instance.ts';
import type { Activity } from '../access/activity.ts';
import { originOf, portHostOf, type PortHost } from './address.ts';
import { PortError, STATUS_OF } from './errors.ts';
import { exchangeHttp, exchangeUpgrade, type Exchange } from './exchange.ts';
import type { Sender } from './headers.ts';
import { comesFromElsewhere, enter, ENTER_PATH, passOf, refusal, send, SIGN_IN, TICKET_MS } from './host-pages.ts';
import { createOpenStreams, type User } from './open-streams.ts';
import { passKey, signPass } from './pass.ts';
import { targetOf } from './target.ts';
import { createUpstream } from './upstream.ts';

export interface PortsDeps {
  endpoint: StreamEndpoint;
  instances: ReadStore<GpuInstance>;
  pods: ReadStore<Pod>;
  /** Every port has a host of its own below this one. */
  base: URL;
  /** 32 bytes that all replicas share; read once, on first use. */
  sessionKey: () => Promise<Buffer>;
  /** How often a ticket was shown in the last minute, at all replicas when they share a store. */
  shown(id: string): Promise<number>;
  /** Whether the API key is still good, and for ports. */
  mayGoOn(user: User): boolean;
  /** Counts one more request of the key; whether its limit has room for it. */
  mayAsk(user: User): Promise<boolean>;
  activity: Pick<Activity, 'began'>;
  clock: Clock;
  log: Logger;
}

/** A request, with the socket when it asks to switch protocols. */
export interface Incoming {
  request: IncomingMessage;
  response: ServerResponse;
  upgrade: { socket: Duplex; head: Buffer } | undefined;
  sender: Sender;
}

/** A call of the API to a port of an instance that the caller may use. */
export interface ApiCall {
  user: User;
  instance: GpuInstance;
  port: number;
  /** What stands before `path` in the URL of the call. */
  prefix: string;
  /** Path and query as the pod gets them. */
  path: string;
}

export interface InstancePorts {
  /** Rejects with `PortError` as long as nothing was answered. */
  call(incoming: Incoming, call: ApiCall): Promise<void>;
  /** A link that opens a port in a browser once, within a minute. Throws `PortError`. */
  link(call: ApiCall): Promise<{ url: string; expires: number }>;
  /** The port that the request's Host names. */
  hostOf(request: IncomingMessage): PortHost | undefined;
  /** Serves a request to such a host. Never rejects. */
  page(incoming: Incoming, host: PortHost): Promise<void>;
  /** Ends the streams of keys that are not good any more. */
  recheck(): void;
  close(): void;
}

export function createInstancePorts(deps: PortsDeps): InstancePorts {
  const streams = createOpenStreams((user) => deps.mayGoOn(user));
  const exchanging = { upstream: createUpstream(deps.endpoint), streams, activity: deps.activity };
  const isSecure = deps.base.protocol === 'https:';
  const key = async (): Promise<Buffer> => passKey(await deps.sessionKey());

  async function pass({ response, upgrade }: Incoming, exchange: Exchange): Promise<void> {
    if (upgrade === undefined) await exchangeHttp(exchanging, exchange, response);
    else await exchangeUpgrade(exchanging, exchange, { ...upgrade, response });
  }

  async function visit(incoming: Incoming, host: PortHost): Promise<void> {
    const { request, response, sender } = incoming;
    const now = deps.clock.now();
    const path = request.url ?? '/';
    if (path.split('?', 1)[0] === ENTER_PATH) {
      const isFirst = async (id: string): Promise<boolean> => (await deps.shown(id)) === 1;
      const mayGoOn = (user: User): boolean => deps.mayGoOn(user);
      const answer = await enter(request, host, { key: await key(), now, isSecure, mayGoOn, isFirst });
      send(response, answer);
      return;
    }
    const known = passOf(request, host, { key: await key(), now, isSecure });
    const instance = known && deps.instances.get(keyOf({ namespace: known.namespace, name: known.instance }));
    if (known === undefined || instance?.metadata.uid !== host.uid || !deps.mayGoOn(known)) {
      send(response, SIGN_IN);
      return;
    }
    if (comesFromElsewhere(request)) {
      send(response, refusal(403, 'A page elsewhere asked for this. Only pages of this host may.'));
      return;
    }
    if (!(await deps.mayAsk(known))) {
      send(response, refusal(429, 'The API key behind this link has made its calls of this minute. Wait.'));
      return;
    }
    const target = targetOf(instance, host.port, deps.pods);
    await pass(incoming, { request, target, user: known, path, way: { kind: 'host' }, sender });
  }

  return {
    call: async (incoming, { user, instance, port, prefix, path }) => {
      const target = targetOf(instance, port, deps.pods);
      const way = { kind: 'call', prefix, port } as const;
      await pass(incoming, { request: incoming.request, target, user, path, way, sender: incoming.sender });
    },
    link: async ({ user, instance, port, path }) => {
      targetOf(instance, port, deps.pods);
      const { name, namespace = '', uid = '' } = instance.metadata;
      const expires = deps.clock.now() + TICKET_MS;
      const about = { namespace, instance: name, uid, port, keyId: user.keyId, path, expires };
      const ticket = signPass({ ...about, kind: 'ticket', id: randomUUID() }, await key());
      return { url: `${originOf({ port, uid }, deps.base)}${ENTER_PATH}?ticket=${ticket}`, expires };
    },
    hostOf: (request) => portHostOf(request.headers.host, deps.base),
    page: async (incoming, host) => {
      try {
        await visit(incoming, host);
      } catch (error) {
        if (!(error instanceof PortError)) deps.log.error({ err: error }, 'A port was not served');
        const [status, text] =
          error instanceof PortError ? [STATUS_OF[error.problem], error.message] : [500, 'Something went wrong here.'];
        if (incoming.response.headersSent) incoming.response.destroy();
        else send(incoming.response, refusal(status, text));
      }
    },
    recheck: () => streams.recheck(),
    close: () => streams.close(),
  };
}
