import type { ClientMetrics } from './client-metrics.ts';
import type {
  ApplyOptions,
  CallOptions,
  DeleteOptions,
  KubeClient,
  ListOptions,
  ListPage,
  PatchType,
} from './client.ts';
import { pathOf } from './client.ts';
import type { Clock } from '../../lib/clock.ts';
import type { KubeConnection } from '../config/connection.ts';
import { NotFoundError } from '../errors.ts';
import { type Call, type CallContext, openStream, sendJson } from './http-call.ts';
import { withFreshToken, withRetry } from './retry.ts';
import type { KubeObject, ResourceType } from '../types.ts';

export interface ClientDependencies {
  clock: Clock;
  /** Uniform in [0, 1): spreads retries. */
  random?: () => number;
  metrics?: ClientMetrics;
  onDate?: CallContext['onDate'];
}

const READ_TIMEOUT_MS = 15_000;
// An admission webhook may take ten seconds by default.
const WRITE_TIMEOUT_MS = 30_000;
const LIST_TIMEOUT_MS = 60_000;
const STREAM_HEAD_TIMEOUT_MS = 30_000;
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_LIST_BYTES = 256 * 1024 * 1024;

const JSON_TYPE = 'application/json';
const METADATA_TYPE = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
const PATCH_TYPES: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
};

type Request = Pick<Call, 'method' | 'path'> & Partial<Call> & { safe: boolean };

/** The object with apiVersion and kind, which the server needs and items of a list lack. */
function complete(type: ResourceType, object: KubeObject): string {
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
  return JSON.stringify({ apiVersion, kind: type.kind, ...object });
}

function listQuery(options: ListOptions): Record<string, string> {
  const { namespace: _namespace, limit, metadataOnly: _metadataOnly, ...rest } = options;
  const query: Record<string, string> = limit === undefined ? {} : { limit: String(limit) };
  for (const [name, value] of Object.entries(rest)) {
    if (typeof value === 'string' && value !== '') query[name] = value;
  }
  return query;
}

function sendOptions({ signal, check }: CallOptions = {}): Pick<Call, 'signal' | 'check'> {
  return { signal, check };
}

function deleteBody(options: DeleteOptions): string {
  const { uid, resourceVersion, gracePeriodSeconds } = options;
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    ...((uid !== undefined || resourceVersion !== undefined) && { preconditions: { uid, resourceVersion } }),
    gracePeriodSeconds,
  });
}

/** True for a patch that carries a resource version: when it is sent twice, the second answer is Conflict. */
function isConditional(body: unknown): boolean {
  return (body as Partial<KubeObject> | undefined)?.metadata?.resourceVersion !== undefined;
}

/** The client over one connection. See {@link KubeClient}; {@link withRetry} has the rules of retries. */
export function createKubeClient(connection: KubeConnection, dependencies: ClientDependencies): KubeClient {
  const { clock, random = Math.random, metrics, onDate } = dependencies;
  const prefix = new URL(connection.server).pathname.replace(/\/$/, '');
  const context: CallContext = { connection, prefix, clock, metrics, onDate };

  async function call<T>(request: Request): Promise<T> {
    const { safe, ...rest } = request;
    const full: Call = { timeoutMs: READ_TIMEOUT_MS, maxBytes: MAX_BYTES, ...rest };
    const options = { clock, random, signal: request.signal, safe };
    return (await withRetry((refresh) => sendJson(context, full, refresh), options)) as T;
  }

  function write<T>(request: Omit<Request, 'timeoutMs'>): Promise<T> {
    return call<T>({ contentType: JSON_TYPE, ...request, timeoutMs: WRITE_TIMEOUT_MS });
  }

  return {
    get: (type, ref, options) => call({ method: 'GET', path: pathOf(type, ref), signal: options?.signal, safe: true }),

    async list<T extends KubeObject>(type: ResourceType<T>, options: ListOptions & { signal?: AbortSignal } = {}) {
      const { signal, ...query } = options;
      const answer = await call<{ metadata: { resourceVersion: string; continue?: string }; items: T[] | null }>({
        method: 'GET',
        path: pathOf(type, { namespace: query.namespace }),
        query: listQuery(query),
        ...(query.metadataOnly === true && { accept: METADATA_TYPE }),
        signal,
        timeoutMs: LIST_TIMEOUT_MS,
        maxBytes: MAX_LIST_BYTES,
        safe: true,
      });
      const { resourceVersion, continue: next } = answer.metadata;
      return { items: answer.items ?? [], resourceVersion, ...(next && { continue: next }) } satisfies ListPage<T>;
    },

    create: (type, object, options) =>
      write({
        method: 'POST',
        path: pathOf(type, { namespace: object.metadata.namespace }),
        ...(options?.dryRun === true && { query: { dryRun: 'All' } }),
        body: complete(type, object),
        ...sendOptions(options),
        // When it is sent twice, the second answer is AlreadyExists and hides that the first call worked.
        safe: false,
      }),

    replace: (type, object, options) =>
      write({
        method: 'PUT',
        path: pathOf(type, object.metadata),
        body: complete(type, object),
        ...sendOptions(options),
        // When it is sent twice, the second answer is Conflict and hides that the first call worked.
        safe: false,
      }),

    apply: (type, object, options: ApplyOptions) =>
      write({
        method: 'PATCH',
        path: pathOf(type, object.metadata, options.subresource),
        query: { fieldManager: options.fieldManager, ...(options.force === true && { force: 'true' }) },
        // JSON is YAML: the server asks for this type by name (KEP-555).
        contentType: 'application/apply-patch+yaml',
        body: complete(type, object),
        ...sendOptions(options),
        safe: true,
      }),

    patch: (type, ref, body, options) =>
      write({
        method: 'PATCH',
        path: pathOf(type, ref, options.subresource),
        contentType: PATCH_TYPES[options.type],
        body: JSON.stringify(body),
        ...sendOptions(options),
        // A JSON patch may add to a list; the other two types only set fields.
        safe: options.type !== 'json' && !isConditional(body),
      }),

    async delete(type, ref, options = {}) {
      try {
        const path = pathOf(type, ref);
        await write({ method: 'DELETE', path, body: deleteBody(options), ...sendOptions(options), safe: true });
      } catch (error) {
        if (!(error instanceof NotFoundError)) throw error;
      }
    },

    stream: (path, query, options) => {
      const limits = { timeoutMs: options.headTimeoutMs ?? STREAM_HEAD_TIMEOUT_MS, maxBytes: 0 };
      const request: Call = { method: 'GET', path, query, signal: options.signal, ...limits };
      // The reflector retries by itself; only a stale token is handled here.
      return withFreshToken((refresh) => openStream(context, request, refresh));
    },

    raw: (method, path, body, options) =>
      write({
        method,
        path,
        body: body === undefined ? undefined : JSON.stringify(body),
        ...sendOptions(options),
        safe: method === 'GET',
      }),

    close: () => connection.close(),
  };
}
