import type { ObjectRef } from '../../kube/types.ts';

/** More than this come only from an API server that is away for long; then the oldest are given up. */
const MOST = 1000;

/** One incarnation of an instance. */
export type AbandonedRef = ObjectRef & { uid: string };

/** Instances that nobody knows of and that could not be removed, perhaps without the annotation that says so. */
export interface Abandoned {
  add(ref: AbandonedRef): void;
  removed(ref: AbandonedRef): void;
  all(): readonly AbandonedRef[];
}

export function createAbandoned(): Abandoned {
  const refs = new Map<string, AbandonedRef>();
  return {
    add: (ref) => {
      refs.set(ref.uid, ref);
      const [oldest = ''] = refs.keys();
      if (refs.size > MOST) refs.delete(oldest);
    },
    removed: ({ uid }) => {
      refs.delete(uid);
    },
    all: () => [...refs.values()],
  };
}
