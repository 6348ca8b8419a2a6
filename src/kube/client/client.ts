import type { Readable } from 'node:stream';
import type { KubeObject, ObjectRef, ResourceType } from '../types.ts';

export interface ListOptions {
  namespace?: string | undefined;
  labelSelector?: string;
  fieldSelector?: string;
  limit?: number;
  continue?: string;
  /** The objects come with their metadata alone. */
  metadataOnly?: boolean;
}

export interface ListPage<T> {
  items: T[];
  resourceVersion: string;
  continue?: string;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Called right before the call is sent, each time: a NotSentError that it throws ends the call, and is its error. */
  check?: () => void;
}

export interface CreateOptions extends CallOptions {
  /** The API server does all but store the object: it says whether quotas and admission take it. */
  dryRun?: boolean;
}

export interface StreamOptions extends CallOptions {
  /** Milliseconds until the answer begins; 30,000 where it is absent. */
  headTimeoutMs?: number;
}

export interface ApplyOptions extends CallOptions {
  /** One stable name per controller. */
  fieldManager: string;
  /** Take over fields that another manager owns. Only for fields that are Berth's by design. */
  force?: boolean;
  subresource?: 'status';
}

export interface DeleteOptions extends CallOptions {
  /** Delete only the object with this uid. Every delete that rests on a cache carries it. */
  uid?: string;
  resourceVersion?: string;
  gracePeriodSeconds?: number;
}

export type PatchType = 'merge' | 'json' | 'strategic';

/** Calls on the API server. Failures throw the classes of `errors.ts`; `retry.ts` says which calls are tried again. */
export interface KubeClient {
  get<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, options?: CallOptions): Promise<T>;
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions & CallOptions): Promise<ListPage<T>>;
  create<T extends KubeObject>(type: ResourceType<T>, object: T, options?: CreateOptions): Promise<T>;
  /** Replaces the whole object, which must be Berth's alone (Lease). metadata.resourceVersion makes it conditional. */
  replace<T extends KubeObject>(type: ResourceType<T>, object: T, options?: CallOptions): Promise<T>;
  /** Server-side apply. Build the object from scratch: never apply one that was read. */
  apply<T extends KubeObject>(type: ResourceType<T>, object: KubeObject, options: ApplyOptions): Promise<T>;
  patch<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    body: unknown,
    options: CallOptions & { type: PatchType; subresource?: 'status' | 'scale' },
  ): Promise<T>;
  /** Resolves also when the object is gone; rejects with ConflictError when a precondition does not hold. */
  delete(type: ResourceType, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  /** A GET whose body comes as a stream: watches and logs. The client encodes the values of `query`. */
  stream(path: string, query: Record<string, string>, options: StreamOptions): Promise<Readable>;
  /** Any other JSON call: TokenReview, SubjectAccessReview, /version. */
  raw<T>(method: string, path: string, body?: unknown, options?: CallOptions): Promise<T>;
  close(): Promise<void>;
}

/** The path of a collection or, with a name, of one object. */
export function pathOf(type: ResourceType, ref: Partial<ObjectRef> = {}, subresource?: string): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const scope =
    type.namespaced && ref.namespace !== undefined ? `/namespaces/${encodeURIComponent(ref.namespace)}` : '';
  const name = ref.name === undefined ? '' : `/${encodeURIComponent(ref.name)}`;
  return `${root}${scope}/${type.plural}${name}${subresource === undefined ? '' : `/${subresource}`}`;
}
