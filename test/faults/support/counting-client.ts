import type { CallOptions, KubeClient } from '../../../src/kube/client/client.ts';
import { EVENTS, type KubeObject, type ResourceType } from '../../../src/kube/types.ts';

/** One write on its way to the API server. */
export interface Write {
  verb: string;
  kind: string;
  namespace: string | undefined;
  name: string;
}

type Named = Pick<KubeObject['metadata'], 'namespace' | 'name'>;
type Around = (write: Write, send: () => Promise<unknown>) => Promise<unknown>;

function isEvent(type: ResourceType): boolean {
  return type.kind === EVENTS.kind && type.group === EVENTS.group;
}

/** A client that passes every write to `around`. Events are left out: they change nothing. */
function withWrites(client: KubeClient, around: Around): KubeClient {
  function through<T>(
    verb: string,
    type: ResourceType,
    { namespace, name }: Named,
    send: () => Promise<T>,
  ): Promise<T> {
    if (isEvent(type)) return send();
    return around({ verb, kind: type.kind, namespace, name }, send) as Promise<T>;
  }
  return {
    ...client,
    create: <T extends KubeObject>(...args: [ResourceType<T>, T, object?]) =>
      through('create', args[0], args[1].metadata, () => client.create(...args)),
    apply: (type, object, options) =>
      through('apply', type, object.metadata, () => client.apply(type, object, options)),
    patch: (type, ref, body, options) =>
      through(options.subresource === 'status' ? 'patch status' : 'patch', type, ref, () =>
        client.patch(type, ref, body, options),
      ),
    replace: (type, object, options) =>
      through('replace', type, object.metadata, () => client.replace(type, object, options)),
    delete: (type, ref, options) => through('delete', type, ref, () => client.delete(type, ref, options)),
  };
}

/** A client that notes every write. */
export function recordWrites(client: KubeClient, writes: Write[]): KubeClient {
  return withWrites(client, (write, send) => {
    writes.push(write);
    return send();
  });
}

/** A client that calls `after` with every write that was made. */
export function afterWrites(client: KubeClient, after: (write: Write) => Promise<void>): KubeClient {
  return withWrites(client, async (write, send) => {
    const answer = await send();
    await after(write);
    return answer;
  });
}

/** The process died: nothing it asks for is sent any more. */
class CrashedError extends Error {
  override name = 'CrashedError';
}

interface CrashPoint {
  at: number;
  /** `late`: the write is on its way when the process dies, and arrives when `deliver` is called. */
  when: 'after' | 'late';
  /** Only writes about objects whose names start so are counted. */
  prefix: string;
}

/** A process that dies at its `at`-th write (from 1). */
export interface Crash {
  /** What the controllers use. */
  readonly wrap: (client: KubeClient) => KubeClient;
  /** What their lease uses: it dies with them. */
  readonly wrapLease: (client: KubeClient) => KubeClient;
  /** The write it died at. */
  readonly crashed: Promise<Write>;
  /** Sends the late write; resolves with whether the API server took it. */
  deliver(): Promise<boolean>;
}

function withoutCheck<T extends CallOptions>(options: T | undefined): T {
  const { check: _check, ...rest } = options ?? {};
  return rest as T;
}

/** A client whose writes are on their way as soon as they are asked for: no check of the sender can stop them. */
function unchecked(client: KubeClient): KubeClient {
  return {
    ...client,
    create: (type, object, options) => client.create(type, object, withoutCheck(options)),
    apply: (type, object, options) => client.apply(type, object, withoutCheck(options)),
    patch: (type, ref, body, options) => client.patch(type, ref, body, withoutCheck(options)),
    replace: (type, object, options) => client.replace(type, object, withoutCheck(options)),
    delete: (type, ref, options) => client.delete(type, ref, withoutCheck(options)),
  };
}

export function crashAt({ at, when, prefix }: CrashPoint): Crash {
  const crashed = Promise.withResolvers<Write>();
  let count = 0;
  let isDead = false;
  let late: (() => Promise<unknown>) | undefined;
  return {
    crashed: crashed.promise,
    deliver: () =>
      late === undefined
        ? Promise.resolve(false)
        : late().then(
            () => true,
            () => false,
          ),
    wrapLease: (client) =>
      withWrites(client, (_write, send) =>
        isDead ? Promise.reject(new CrashedError('The process is dead.')) : send(),
      ),
    wrap: (client) =>
      withWrites(unchecked(client), async (write, send) => {
        if (isDead) throw new CrashedError('The process is dead.');
        if (!write.name.startsWith(prefix)) return send();
        count += 1;
        if (count !== at) return send();
        if (when === 'after') await send();
        if (when === 'late') late = send;
        isDead = true;
        crashed.resolve(write);
        throw new CrashedError('The process was killed here.');
      }),
  };
}
