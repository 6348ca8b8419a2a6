import type { KubeClient } from '../kube/client/client.ts';
import { hasEnded } from '../kube/pod-phase.ts';
import { findObject } from '../kube/client/find-object.ts';
import { ForbiddenError } from '../kube/errors.ts';
import { NETWORK_POLICIES, type NetworkPolicy } from '../kube/network-policy.ts';
import { type Container, type Namespace, NAMESPACES, type Pod, PODS, type Secret, SECRETS } from '../kube/types.ts';
import type { Clock } from '../lib/clock.ts';
import { pullContentFor } from '../resources/image-credentials.ts';
import { PULL_SECRET } from '../resources/registry-credential.ts';
import type { Report } from './examine.ts';
import type { Finding } from './finding.ts';

const PORT = 8080;
const BUSYBOX = '/tools/bin/busybox';
const LABELS = { 'app.kubernetes.io/managed-by': 'berth-doctor' };
const SERVER = { 'berth.dev/doctor': 'server' };
/** Seconds after which Kubernetes ends a pod of the probe, whatever becomes of this process. */
const DEADLINE_S = 180;

/** What pods of the probe run: the image of Berth itself, as its controller has it, and what pulls it. */
type ProbeImage = Pick<Container, 'image' | 'imagePullPolicy'> & Pick<NonNullable<Pod['spec']>, 'imagePullSecrets'>;

const SERVE = `echo ok >/tmp/index.html && exec ${BUSYBOX} httpd -f -p ${PORT} -h /tmp`;

/** Whether the server answers. Not wget: that of a static busybox crashes in glibc's name resolution. */
function ask(ip: string): string {
  return `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | ${BUSYBOX} nc -w 2 ${ip} ${PORT} | ${BUSYBOX} grep -q ok`;
}

/** Ends with 0 when the server answered once, with 1 when it did not in thirty tries. */
function reach(ip: string): string {
  return `for i in $(${BUSYBOX} seq 30); do ${ask(ip)} && exit 0; ${BUSYBOX} sleep 1; done; exit 1`;
}

/** Ends with 0 when the server did not answer three times in a row, with 1 when it still answers after thirty tries. */
function miss(ip: string): string {
  const answered = `n=0; ${BUSYBOX} sleep 1`;
  const silent = 'n=$((n+1)); [ $n -ge 3 ] && exit 0';
  return `n=0; for i in $(${BUSYBOX} seq 30); do if ${ask(ip)}; then ${answered}; else ${silent}; fi; done; exit 1`;
}

function probeNamespace(name: string): Namespace {
  return { metadata: { name, labels: { ...LABELS, 'pod-security.kubernetes.io/enforce': 'restricted' } } };
}

function pod(
  name: string,
  namespace: string,
  script: string,
  { labels, image }: { labels: object; image: ProbeImage },
): Pod {
  const { imagePullSecrets, ...program } = image;
  return {
    metadata: { name, namespace, labels: { ...LABELS, ...labels } },
    spec: {
      restartPolicy: 'Never',
      activeDeadlineSeconds: DEADLINE_S,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...(imagePullSecrets && { imagePullSecrets }),
      // As the image's own user, or one that OpenShift chooses.
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      // No container runs on a simulated node.
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: 'berth.dev/simulated', operator: 'DoesNotExist' }] }],
          },
        },
      },
      containers: [
        {
          name: 'main',
          ...program,
          command: [BUSYBOX, 'sh', '-c', script],
          resources: { requests: { cpu: '5m', memory: '16Mi' }, limits: { memory: '32Mi' } },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
        },
      ],
      volumes: [{ name: 'tmp', emptyDir: { sizeLimit: '1Mi' } }],
    },
  };
}

export function serverPod(namespace: string, image: ProbeImage): Pod {
  return pod('server', namespace, SERVE, { labels: SERVER, image });
}

/** Succeeds when it reaches the server. */
export function reachingPod(namespace: string, ip: string, image: ProbeImage): Pod {
  return pod('reaches', namespace, reach(ip), { labels: {}, image });
}

/** Succeeds when it does not reach the server any more. */
export function missingPod(namespace: string, ip: string, image: ProbeImage): Pod {
  return pod('misses', namespace, miss(ip), { labels: {}, image });
}

/** Lets nothing reach the server. */
export function closingPolicy(namespace: string): NetworkPolicy {
  return {
    metadata: { name: 'closed', namespace, labels: LABELS },
    spec: { podSelector: { matchLabels: SERVER }, policyTypes: ['Ingress'] },
  };
}

export type ProbeOutcome =
  | { result: 'closed' | 'open' }
  /** Nothing can be said, and why. */
  | { result: 'unknown'; why: string };

export interface ProbeDeps {
  client: Pick<KubeClient, 'create' | 'get' | 'delete'>;
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** A namespace that does not exist yet, for the probe alone. */
  namespace: string;
  image: ProbeImage;
  /** Berth's own namespace, and the Secrets there that pull the image. */
  pull: { namespace: string; names: readonly string[] };
}

const STEP_MS = 500;
/** A pod may have to pull its image, and a client tries for a minute and a half at most. */
const POD_MS = 150_000;
const ACCOUNT_MS = 15_000;

/** What pulls the image in the namespace of the probe; undefined where the image needs no credentials. */
async function pullSecret({ client, namespace, image, pull }: ProbeDeps): Promise<Secret | undefined> {
  const found = await Promise.all(
    pull.names.map((name) => findObject(client, SECRETS, { namespace: pull.namespace, name })),
  );
  const content = pullContentFor([image.image ?? ''], found);
  return content && { metadata: { name: PULL_SECRET, namespace, labels: LABELS }, ...content };
}

/** Kubernetes makes the service account of a new namespace a moment after it. */
async function createPod({ client, clock }: ProbeDeps, pod: Pod): Promise<void> {
  const until = clock.monotonic() + ACCOUNT_MS;
  for (;;) {
    try {
      await client.create(PODS, pod);
      return;
    } catch (error) {
      const isEarly = error instanceof ForbiddenError && error.statusMessage.includes('serviceaccount');
      if (!isEarly || clock.monotonic() > until) throw error;
      await clock.sleep(STEP_MS);
    }
  }
}

/** Makes a pod and waits until it is as wanted. Returns undefined when it is not in time. */
async function made(deps: ProbeDeps, pod: Pod, isDone: (pod: Pod) => boolean): Promise<Pod | undefined> {
  const { client, clock, namespace } = deps;
  await createPod(deps, pod);
  const until = clock.monotonic() + POD_MS;
  for (;;) {
    const found = await findObject(client, PODS, { namespace, name: pod.metadata.name });
    if (found !== undefined && isDone(found)) return found;
    if (found === undefined || clock.monotonic() > until) return undefined;
    await clock.sleep(STEP_MS);
  }
}

async function run(deps: ProbeDeps): Promise<ProbeOutcome> {
  const { client, namespace, image } = deps;
  const server = await made(
    deps,
    serverPod(namespace, image),
    (pod) => pod.status?.phase === 'Running' || hasEnded(pod),
  );
  const ip = server?.status?.podIP;
  if (server?.status?.phase !== 'Running' || ip === undefined)
    return { result: 'unknown', why: 'the pod of the probe did not run' };
  const before = await made(deps, reachingPod(namespace, ip, image), hasEnded);
  if (before?.status?.phase !== 'Succeeded')
    return { result: 'unknown', why: 'one pod did not reach another one without any NetworkPolicy' };
  await client.create(NETWORK_POLICIES, closingPolicy(namespace));
  const after = await made(deps, missingPod(namespace, ip, image), hasEnded);
  if (after === undefined) return { result: 'unknown', why: 'the second pod of the probe did not end' };
  if (after.status?.phase !== 'Succeeded') return { result: 'open' };
  // A server that ended meanwhile, as at its deadline where images are pulled slowly, answers nobody either.
  const still = await findObject(client, PODS, { namespace, name: server.metadata.name });
  return still?.status?.phase === 'Running'
    ? { result: 'closed' }
    : { result: 'unknown', why: 'the pod of the probe ended before it was known whether the policy closes it' };
}

/**
 * Whether a NetworkPolicy closes a pod: two pods in a namespace of their own, before and after the policy. They pull their
 * image with the credentials that Berth has for it. The namespace is deleted in every case. Throws KubeError where a call
 * is refused.
 */
export async function probeNetwork(deps: ProbeDeps): Promise<ProbeOutcome> {
  const secret = await pullSecret(deps);
  await deps.client.create(NAMESPACES, probeNamespace(deps.namespace));
  try {
    if (secret === undefined) return await run(deps);
    await deps.client.create(SECRETS, secret);
    return await run({ ...deps, image: { ...deps.image, imagePullSecrets: [{ name: PULL_SECRET }] } });
  } finally {
    await deps.client.delete(NAMESPACES, { name: deps.namespace });
  }
}

const NAME = 'network-probe';

function findingOf(outcome: ProbeOutcome): Finding[] {
  if (outcome.result === 'closed') return [];
  const isOpen = outcome.result === 'open';
  return [
    {
      check: NAME,
      severity: isOpen ? 'error' : 'unknown',
      reason: isOpen ? 'NotEnforced' : 'ProbeFailed',
      objects: [],
      message: isOpen
        ? 'A pod that a NetworkPolicy closes was reached: nothing enforces NetworkPolicies.'
        : `Not known: ${outcome.result === 'unknown' ? outcome.why : ''}.`,
      why: 'Where nothing enforces them, pods of tenants reach each other, the API server and the metadata service.',
      remedy: 'kubectl get daemonsets --all-namespaces -o wide   # is one of them Calico, Cilium or the like?',
    },
  ];
}

/** The report with what the probe saw. What it knows now is no longer unknown. */
export function withProbe(report: Report, outcome: ProbeOutcome): Report {
  const isKnown = outcome.result !== 'unknown';
  const checks = report.checks.map((one) => {
    const findings = one.findings.filter(({ reason }) => !isKnown || reason !== 'EnforcementNotKnown');
    return { ...one, findings };
  });
  const probe = { name: NAME, title: 'A NetworkPolicy closes a pod, as probed', findings: findingOf(outcome) };
  return { ...report, checks: [...checks, probe] };
}
