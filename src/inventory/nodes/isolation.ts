import type { Node } from '../../kube/types.ts';
import type { Pool } from '../pools.ts';

/** Which handlers of a node's container runtime can run a pod in a user namespace of its own. */
export interface UserNamespaceSupport {
  /** Their names; the empty string is the default handler. */
  readonly handlers: ReadonlySet<string>;
  /** Whether every handler can. */
  readonly all: boolean;
}

/** What an instance asks of its node beside what its pool asks. */
export interface IsolationNeeds {
  /** RuntimeClass that the instance names. */
  readonly runtimeClassName: string | undefined;
  /** Whether the tenant may choose this class where the pool has none. */
  readonly mayChoose: boolean;
  /** The pod must run in a user namespace. */
  readonly userNamespaces: boolean;
}

/** How a pod is kept apart from its node. */
export interface PodIsolation {
  runtimeClassName: string | undefined;
  userNamespaces: boolean;
  /** Without a user namespace the pod must not run. */
  isRequired: boolean;
}

/** What a node lacks for an instance. */
export type IsolationGap = 'RuntimeClass' | 'UserNamespaces';

interface Facts {
  readonly pool: Pool | undefined;
  readonly userNamespaces: UserNamespaceSupport;
}

const NO_NEEDS: IsolationNeeds = { runtimeClassName: undefined, mayChoose: false, userNamespaces: false };

/** What the kubelet says in status.runtimeHandlers, from Kubernetes 1.30 on. A node that says nothing cannot. */
export function userNamespaceSupport({ status }: Node): UserNamespaceSupport {
  const handlers = status?.runtimeHandlers ?? [];
  const able = handlers.filter(({ features }) => features?.userNamespaces === true);
  return {
    handlers: new Set(able.map(({ name }) => name ?? '')),
    all: able.length > 0 && able.length === handlers.length,
  };
}

// The handler of a RuntimeClass stands in an object that Berth may not read, and mostly has the name of the class.
function canIsolate({ handlers, all }: UserNamespaceSupport, runtimeClassName = ''): boolean {
  return all || handlers.has(runtimeClassName);
}

/**
 * How a pod runs on a node, or what the node lacks. The RuntimeClass of the pool always holds. The pool, the tenant's
 * ceilings and the instance may each require a user namespace, and none of them can lift what another requires.
 */
export function isolationOn({ pool, userNamespaces }: Facts, needs = NO_NEEDS): PodIsolation | IsolationGap {
  const own = pool?.spec.runtimeClassName;
  const wanted = needs.runtimeClassName ?? own;
  if (wanted !== own && (own !== undefined || !needs.mayChoose)) return 'RuntimeClass';
  const rule = pool?.spec.userNamespaces ?? 'Never';
  const isRequired = needs.userNamespaces || rule === 'Required';
  const isAble = canIsolate(userNamespaces, wanted);
  if (isRequired && !isAble) return 'UserNamespaces';
  return { runtimeClassName: wanted, userNamespaces: isAble && (isRequired || rule === 'Preferred'), isRequired };
}
