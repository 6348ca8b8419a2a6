import type { PodTarget } from '../access/pod-target.ts';
import type { DirectLink } from '../direct/direct-link.ts';
import { type Carrier, type DirectDeps, DirectWayClosedError, openDirect } from '../direct/open-direct.ts';
import { execInPod } from '../kube/streams/exec.ts';
import { StreamRefusedError, type StreamEndpoint } from '../kube/streams/websocket.ts';
import { TOOLS_BIN } from '../resources/pod/tools-volume.ts';

export interface DirectWayDeps extends DirectDeps {
  endpoint: StreamEndpoint;
}

interface KnownLink {
  podUid: string;
  opening: Promise<DirectLink | undefined>;
  /** Once it is open. */
  open?: DirectLink | undefined;
}

/** Starts a helper by exec. Rejects with `StreamRefusedError`. */
async function startHelper(endpoint: StreamEndpoint, target: PodTarget, signal: AbortSignal): Promise<Carrier> {
  const stream = await execInPod(endpoint, target, { command: [`${TOOLS_BIN}/direct`], tty: false, signal });
  stream.stderr.resume();
  return {
    input: stream.stdin,
    output: stream.stdout,
    whyEnded: async () => {
      const exit = await stream.exit;
      if (exit.kind === 'lost') return new StreamRefusedError(exit.message, 0);
      return new DirectWayClosedError('The tools of the instance have no program for it.');
    },
    close: () => stream.close(),
  };
}

/** The direct way of one SSH connection: one link for all its sessions and forwards, opened by the first of them. */
export class DirectWay {
  readonly #deps: DirectWayDeps;
  readonly #gone: AbortSignal;
  #link: KnownLink | undefined;

  /** The link ends when the client is gone. */
  constructor(deps: DirectWayDeps, gone: AbortSignal) {
    this.#deps = deps;
    this.#gone = gone;
  }

  /**
   * The link to a pod. Undefined where exec must carry the bytes: without tools or an address, and while the direct way to
   * this pod is known to be closed. Rejects with `StreamRefusedError` when the pod cannot be reached at all.
   */
  async to(target: PodTarget): Promise<DirectLink | undefined> {
    const { address, tools, uid } = target;
    const { blocked, endpoint } = this.#deps;
    const known = this.#link;
    if (known?.podUid === uid && known.open?.isOpen !== false) return await known.opening;
    if (!tools || address === undefined || blocked.has(uid)) return undefined;
    const start = (): Promise<Carrier> => startHelper(endpoint, target, this.#gone);
    const link: KnownLink = {
      podUid: uid,
      opening: openDirect(this.#deps, start, { ...target, address }, this.#gone),
    };
    this.#link = link;
    try {
      link.open = await link.opening;
      return link.open;
    } finally {
      // The next session tries again, unless the pod is blocked.
      if (link.open === undefined && this.#link === link) this.#link = undefined;
    }
  }
}
