import type { Obstacle } from '../inventory/nodes/obstacles.ts';
import type { Pool } from '../inventory/pools.ts';
import { firstOf, named, type Problem, quoted } from './finding.ts';

type Words = Pick<Problem, 'severity' | 'message' | 'why' | 'remedy'>;
type Taint = Extract<Obstacle, { reason: 'Tainted' }>['taint'];

interface Case {
  /** The nodes, as the subject of a sentence. */
  who: string;
  /** The first nodes, as words of a command. */
  words: string;
  /** Name of their pool. */
  pool: string;
}

const IDLE = 'Nothing new starts there, and their GPUs earn nothing.';

const WORDS: Record<Exclude<Obstacle['reason'], 'Tainted'>, (of: Case) => Omit<Words, 'why'> & { why?: string }> = {
  NoGPUs: ({ who, words }) => ({
    severity: 'error',
    message: `${who}: labels tell of GPUs, and no device plugin offers any to Kubernetes.`,
    remedy: `kubectl get pods --all-namespaces -o wide --field-selector spec.nodeName=${words.split(' ', 1)[0]}`,
  }),
  NoHealthyGPUs: ({ who, words }) => ({
    severity: 'error',
    message: `${who}: the device plugin holds every GPU for unhealthy.`,
    remedy: `kubectl describe node ${words}`,
  }),
  NoPool: ({ who }) => ({
    severity: 'warning',
    message: `${who}: no GPUPool selects the labels.`,
    remedy: 'kubectl get gpupools -o custom-columns=NAME:.metadata.name,SELECTOR:.spec.nodeSelector',
  }),
  NoSize: ({ who, pool }) => ({
    severity: 'error',
    message: `${who}: every size of GPUPool ${pool} asks for more GPUs than there are on the node.`,
    remedy: `kubectl patch gpupool ${pool} --type json -p '[{"op":"add","path":"/spec/sizes/-","value":1}]'`,
  }),
  Deleted: ({ who, words }) => ({
    severity: 'warning',
    message: `${who}: deleted, and finalizers keep the object.`,
    remedy: `kubectl get node ${words} -o custom-columns=NAME:.metadata.name,FINALIZERS:.metadata.finalizers`,
  }),
  NotReady: ({ who, words }) => ({
    severity: 'error',
    message: `${who}: not Ready.`,
    why: `${IDLE} Instances on a node that stays away are NodeLost until its Node object is deleted.`,
    remedy: `kubectl describe node ${words}`,
  }),
  Cordoned: ({ who, words }) => ({
    severity: 'warning',
    message: `${who}: cordoned.`,
    remedy: `kubectl uncordon ${words}`,
  }),
  RuntimeClass: withoutUserNamespaces,
  UserNamespaces: withoutUserNamespaces,
  Quarantined: ({ who }) => ({
    severity: 'warning',
    message: `${who}: instances keep failing to start, so the controller waits up to ten minutes before the next one.`,
    remedy: 'kubectl get events --all-namespaces --field-selector type=Warning --sort-by=.lastTimestamp',
  }),
};

function withoutUserNamespaces({ who, pool }: Case): Omit<Words, 'why'> {
  return {
    severity: 'error',
    message: `${who}: GPUPool ${pool} requires user namespaces, and the container runtime there does not say that it has them.`,
    remedy: `kubectl patch gpupool ${pool} --type merge -p '{"spec":{"userNamespaces":"Preferred"}}'`,
  };
}

function tainted({ key, value = '', effect }: Taint, { who, words }: Case, pool: Pool | undefined): Words {
  const taint = `${key}${value === '' ? '' : `=${value}`}:${effect}`;
  const severity = 'warning';
  if (pool === undefined) {
    const message = `${who}: no instance tolerates the taint ${taint}.`;
    return { severity, message, why: IDLE, remedy: `kubectl taint node ${words} ${quoted(`${taint}-`)}` };
  }
  const tolerations = [...(pool.spec.tolerations ?? []), { key, operator: 'Equal', value, effect }];
  const patch = quoted(JSON.stringify({ spec: { tolerations } }));
  return {
    severity,
    message: `${who}: no instance of GPUPool ${pool.name} tolerates the taint ${taint}.`,
    why: IDLE,
    remedy: `kubectl patch gpupool ${pool.name} --type merge -p ${patch}`,
  };
}

/** What keeps these nodes of a pool out of the offers, in words. */
export function describe(obstacle: Obstacle, nodes: readonly string[], pool: Pool | undefined): Words {
  const who = `${nodes.length === 1 ? 'Node' : 'Nodes'} ${named(nodes)}`;
  const of: Case = { who, words: firstOf(nodes).words, pool: pool?.name ?? '' };
  if (obstacle.reason === 'Tainted') return tainted(obstacle.taint, of, pool);
  return { why: IDLE, ...WORDS[obstacle.reason](of) };
}
