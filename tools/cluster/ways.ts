import type { Engine } from './kind/engine.ts';
import { LocalFailure } from '../lib/failure.ts';
import { type FoundGo, OLDEST_GO } from '../lib/go/find.ts';

/** The ways to a cluster: one that was named, one that kind makes, one that is built from Go modules. */
export type Way = 'given' | 'kind' | 'built';

/** What this machine offers to the three ways. */
export interface HostFacts {
  /** Whether an option or the environment names a cluster. */
  given: boolean;
  /** The container engine that answers. */
  engine: Engine | undefined;
  /** Whether the program `kind` is installed. */
  kind: boolean;
  go: Omit<FoundGo, 'path'>;
  /** Whether all programs are in the cache, or can be downloaded. */
  ready: boolean;
}

/** Takes the first way that works on this machine. Throws a LocalFailure that says what each of the three lacks. */
export function chooseWay({ given, engine, kind, go, ready }: HostFacts): Way {
  if (given) return 'given';
  if (engine !== undefined && kind) return 'kind';
  if (ready || go.usable) return 'built';
  const container =
    engine === undefined ? 'neither Docker nor Podman answers' : `${engine} answers, but kind is not installed`;
  throw new LocalFailure(
    'This machine has no way to a Kubernetes cluster.',
    'Do one of these: name a kubeconfig (--kubeconfig FILE or KUBECONFIG), install Docker and kind ' +
      `(https://kind.sigs.k8s.io), or install Go ${OLDEST_GO} or newer (https://go.dev/dl).`,
    ['1. a kubeconfig: none was named', `2. kind: ${container}`, `3. build from Go modules: ${go.detail}`],
  );
}

/** Before this one the extended resources of a DeviceClass are off. */
const OLDEST_DRA = 36;

/**
 * Throws LocalFailure where no DRA driver can give the GPUs of the real node.
 * @param version the version of Kubernetes that is built
 */
export function requireDra(way: Way, version: string): void {
  const [, minor = 0] = version.split('.').map(Number);
  if (way === 'built' && minor >= OLDEST_DRA) return;
  if (way === 'built')
    throw new LocalFailure(
      `--dra needs Kubernetes 1.${OLDEST_DRA} or newer, and BERTH_KUBERNETES names ${version}.`,
      'Unset BERTH_KUBERNETES, or leave out --dra.',
    );
  const subject = '--dra starts a driver on a node of its own, and';
  throw way === 'given'
    ? new LocalFailure(
        `${subject} --kubeconfig, --context or KUBECONFIG names a cluster.`,
        'Name none, or leave out --dra.',
      )
    : new LocalFailure(`${subject} kind makes the node of this one.`, 'Add --built, or leave out --dra.');
}
