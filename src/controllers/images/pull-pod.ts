import { contentHash } from '../../lib/content-hash.ts';
import { Lru } from '../../lib/lru.ts';
import type { Pod } from '../../kube/types.ts';
import { tolerationsOf } from '../../inventory/nodes/node-state.ts';
import { GPU_POOLS, type GpuPool } from '../../resources/gpu-pool.ts';
import { IMAGE_PULL_LABEL } from '../../resources/pod/image-pull.ts';
import { TOOLS_BIN, toolsVolume } from '../../resources/pod/tools-volume.ts';
import { API_VERSION } from '../../resources/schema.ts';
import {
  isNotCreated,
  scheduledCondition,
  sentence,
  waitingState,
  words,
} from '../gpu-instance/decide/pod/pod-facts.ts';
import { credentialWords, isBadImage, isPullError } from '../gpu-instance/decide/pod/pull-words.ts';

export const PULL_PRIORITY_CLASS = 'berth-image-pulls';
/** The container whose image is pulled. */
const PULL_CONTAINER = 'pull';
/** Seconds for one pull, from the start of the pod on: a node with a slow disk needs half of it for 30 GB. */
const DEADLINE_SECONDS = 3600;
/** Hex digits of a hash: nodes and images of a cluster do not meet by chance. */
const HASH_DIGITS = 12;
/** Names of nodes and images whose hashes are remembered: nodes come and go. */
const MOST_HASHES = 16_384;

/** Names of the pods of one pool. The same node and image always have the same name, so two leaders make one pod. */
export class PullNames {
  readonly #hashes = new Lru<string, string>(MOST_HASHES);

  of(node: string, image: string): string {
    return `berth-pull-${this.#hash(node)}-${this.#hash(image)}`;
  }

  #hash(text: string): string {
    let hash = this.#hashes.get(text);
    if (hash === undefined) this.#hashes.set(text, (hash = contentHash(text).slice(0, HASH_DIGITS)));
    return hash;
  }
}

interface PullPodInput {
  pool: GpuPool;
  name: string;
  node: string;
  image: string;
  /** Berth's own. */
  namespace: string;
  toolsImage: string;
  /** Secrets of Berth's namespace for its own images. */
  imagePullSecrets: readonly string[];
}

/**
 * The pod that makes the kubelet of a node pull an image. It runs a program of Berth's that ends at once, since an image
 * may have none. So the node gets the tools image too, which every instance needs.
 */
export function pullPod({ pool, name, node, image, namespace, toolsImage, ...own }: PullPodInput): Pod {
  const tools = toolsVolume(toolsImage);
  const { securityContext, resources } = tools.initContainer;
  const ofPool = pool.spec.imagePullSecrets?.map(({ name }) => name) ?? [];
  const secrets = [...ofPool, ...own.imagePullSecrets].map((name) => ({ name }));
  return {
    metadata: {
      name,
      namespace,
      labels: { [IMAGE_PULL_LABEL]: 'true', 'app.kubernetes.io/managed-by': 'berth' },
      ownerReferences: [
        {
          apiVersion: API_VERSION,
          kind: GPU_POOLS.kind,
          name: pool.metadata.name,
          uid: pool.metadata.uid ?? '',
          controller: true,
        },
      ],
    },
    spec: {
      initContainers: [tools.initContainer],
      containers: [
        {
          name: PULL_CONTAINER,
          image,
          imagePullPolicy: 'IfNotPresent',
          command: [`${TOOLS_BIN}/busybox`, 'true'],
          // Images of NVIDIA ask for all GPUs. With this word their toolkit leaves the container alone.
          env: [{ name: 'NVIDIA_VISIBLE_DEVICES', value: 'void' }],
          ...(resources && { resources }),
          ...(securityContext && { securityContext }),
          volumeMounts: [tools.mount],
        },
      ],
      volumes: [tools.volume],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }],
          },
        },
      },
      tolerations: tolerationsOf(pool.spec),
      priorityClassName: PULL_PRIORITY_CLASS,
      restartPolicy: 'Never',
      activeDeadlineSeconds: DEADLINE_SECONDS,
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...(secrets.length > 0 && { imagePullSecrets: secrets }),
    },
  };
}

/** A pod that the scheduler cannot bind for this long gives its turn to another node. */
const UNSCHEDULED_MS = 60_000;

/** How far a pull is. `leaving`: the pod was deleted and is not gone yet. */
type PullState =
  | { is: 'leaving' }
  | { is: 'pulling'; changesAt?: number }
  | { is: 'done' }
  | { is: 'failed'; message: string };

const DONE: PullState = { is: 'done' };

function failed(message: string): PullState {
  return { is: 'failed', message };
}

/** What a pod says about its pull. `now`: milliseconds since the epoch. */
export function pullState(pod: Pod, now: number): PullState {
  if (pod.metadata.deletionTimestamp !== undefined) return { is: 'leaving' };
  const { phase, reason = '', message } = pod.status ?? {};
  const main = pod.status?.containerStatuses?.find(({ name }) => name === PULL_CONTAINER);
  // A container that was made has its image, however it ended.
  if (phase === 'Succeeded' || (main?.state?.waiting === undefined && main?.imageID)) return DONE;
  if (phase === 'Failed')
    return failed(sentence(words([reason, message].filter(Boolean).join(': '), 'The pod failed.')));
  const waiting = waitingState(pod);
  if (waiting !== undefined) {
    const said = `${waiting.reason}: ${waiting.message}`;
    // Only operators choose these images, and read what becomes of them.
    if (isPullError(waiting.reason) || isBadImage(waiting.reason))
      return failed(`${sentence(words(said, ''))} ${credentialWords(pod, waiting.container)}`);
    // The kubelet makes a container after it has pulled the image.
    if (isNotCreated(waiting.reason))
      return waiting.container === PULL_CONTAINER ? DONE : failed(sentence(words(said, '')));
  }
  return unscheduled(pod, now) ?? { is: 'pulling' };
}

function unscheduled(pod: Pod, now: number): PullState | undefined {
  const scheduled = scheduledCondition(pod);
  if (scheduled?.status !== 'False') return undefined;
  const changesAt = Date.parse(scheduled.lastTransitionTime ?? '') + UNSCHEDULED_MS;
  if (!(changesAt <= now)) return { is: 'pulling', ...(Number.isFinite(changesAt) && { changesAt }) };
  return failed(
    sentence(`The pod that pulls found no room: ${words(scheduled.message, 'the scheduler says nothing')}`),
  );
}
