import { LocalFailure } from '../lib/failure.ts';

/** How a cluster can be had here. */
export type Way = 'given' | 'kind' | 'built';

/** What was found on the host. */
export interface Surroundings {
  /** The kubeconfig that was named by option or environment, or the context alone. */
  given: boolean;
  /** The container engine that answers, and whether the `kind` program is there. */
  engine: 'docker' | 'podman' | undefined;
  kind: boolean;
  /** `go version` of a Go new enough to fetch its own toolchain, else why not. */
  go: { usable: boolean; detail: string };
  /** The programs are in the cache already. */
  cached: boolean;
}

/** Takes the first way that works here; throws a LocalFailure that says what each of the three lacks. */
export function chooseWay({ given, engine, kind, go, cached }: Surroundings): Way {
  if (given) return 'given';
  if (engine !== undefined && kind) return 'kind';
  if (cached || go.usable) return 'built';
  const container =
    engine === undefined ? 'neither Docker nor Podman answers' : `${engine} answers, but kind is not installed`;
  throw new LocalFailure(
    'No way to a Kubernetes cluster works here.',
    'Do one of these: name a kubeconfig (--kubeconfig FILE or KUBECONFIG), install Docker and kind ' +
      '(https://kind.sigs.k8s.io), or install Go 1.21 or newer (https://go.dev/dl).',
    ['1. a kubeconfig: none was named', `2. kind: ${container}`, `3. build from Go modules: ${go.detail}`],
  );
}

/** Whether `go version` prints at least 1.21, which fetches the toolchain that a go.mod asks for. */
export function judgeGo(output: string | undefined): { usable: boolean; detail: string } {
  if (output === undefined) return { usable: false, detail: 'Go is not installed' };
  const match = /go(\d+)\.(\d+)/.exec(output);
  if (match === null) return { usable: false, detail: `\`go version\` says "${output.trim()}"` };
  const [, major, minor] = match;
  const usable = Number(major) > 1 || Number(minor) >= 21;
  return { usable, detail: usable ? match[0] : `${match[0]} is too old, 1.21 or newer is needed` };
}
