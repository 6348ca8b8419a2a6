import type { KubeClient } from '../../kube/client/client.ts';

export class NotLeaderError extends Error {
  override name = 'NotLeaderError';

  constructor() {
    super('This process does not hold the lease, so it writes nothing.');
  }
}

function refuse(): Promise<never> {
  return Promise.reject(new NotLeaderError());
}

/**
 * A client that refuses every write while `mayWrite` is false. A timer notices a lost lease, but a process that was
 * suspended handles its sockets before its timers: only a check at the write itself is in time.
 */
export function guardWrites(client: KubeClient, mayWrite: () => boolean): KubeClient {
  return {
    ...client,
    create: (type, object, options) => (mayWrite() ? client.create(type, object, options) : refuse()),
    replace: (type, object, options) => (mayWrite() ? client.replace(type, object, options) : refuse()),
    apply: (type, object, options) => (mayWrite() ? client.apply(type, object, options) : refuse()),
    patch: (type, ref, body, options) => (mayWrite() ? client.patch(type, ref, body, options) : refuse()),
    delete: (type, ref, options) => (mayWrite() ? client.delete(type, ref, options) : refuse()),
    raw: (method, path, body, options) =>
      method === 'GET' || mayWrite() ? client.raw(method, path, body, options) : refuse(),
  };
}
