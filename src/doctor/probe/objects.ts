import type { NetworkPolicy } from '../../kube/installation-types.ts';
import type { Container, Namespace, Pod } from '../../kube/types.ts';

const PORT = 8080;
const BUSYBOX = '/tools/bin/busybox';
const LABELS = { 'app.kubernetes.io/managed-by': 'berth-doctor' };
const SERVER = { 'berth.dev/doctor': 'server' };
/** Seconds after which Kubernetes ends a pod of the probe, whatever becomes of this process. */
const DEADLINE_S = 180;

/** What pods of the probe run: the image of Berth itself, as its controller has it. */
export type ProbeImage = Pick<Container, 'image' | 'imagePullPolicy'>;

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

export function probeNamespace(name: string): Namespace {
  return { metadata: { name, labels: { ...LABELS, 'pod-security.kubernetes.io/enforce': 'restricted' } } };
}

function pod(
  name: string,
  namespace: string,
  script: string,
  { labels, image }: { labels: object; image: ProbeImage },
): Pod {
  return {
    metadata: { name, namespace, labels: { ...LABELS, ...labels } },
    spec: {
      restartPolicy: 'Never',
      activeDeadlineSeconds: DEADLINE_S,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
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
          ...image,
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
