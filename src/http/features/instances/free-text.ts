import type { ReadStore } from '../../../kube/watch/store.ts';
import type { KubeObject } from '../../../kube/types.ts';
import type { GpuInstance, GpuInstanceSpec } from '../../../resources/instances/gpu-instance.ts';
import type { InstanceTemplate, InstanceTemplateSpec } from '../../../resources/instance-template.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import { REQUEST_HASH } from '../../../resources/ids.ts';
import type { CallLimits } from '../../interface/request-limit.ts';
import { literal } from '../../../resources/pod/literal.ts';
import { LIMITS } from '../../interface/schema.ts';

// Texts of an instance may be as long as a body. etcd and every watch cache hold them, and etcd each version of them for
// minutes, so a tenant has a share: as much as 1000 instances with short texts have.

/** Characters that an instance may have without further question. */
const SHORT = 4096;
const MOST_HELD = 1000 * SHORT;

const FIELDS = 'stats, runtype, env, on_start, command and args';

type Texts = Pick<GpuInstanceSpec, 'stats' | 'requestedRuntype' | 'onStart' | 'env' | 'command' | 'args'>;

function programTextsOf({ onStart, env = [], command = [], args = [] }: Texts): string[] {
  const variables = env.flatMap(({ name, value = '' }) => [name, value]);
  return [onStart ?? '', ...variables, ...command, ...args];
}

function textsOf(spec: Texts): string[] {
  return [spec.stats ?? '', spec.requestedRuntype ?? '', ...programTextsOf(spec)];
}

const lengths = new WeakMap<Texts, number>();

/** Characters of free text that an instance or a template carries, each version of which is read once. */
export function freeTextOf(spec: Texts): number {
  const length = lengths.get(spec) ?? textsOf(spec).reduce((total, text) => total + text.length, 0);
  lengths.set(spec, length);
  return length;
}

/** Bytes of a text as the API server writes it into etcd: Go's encoder escapes these characters (encoding/json). */
function storedBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) + 5 * (text.match(/[<>&\u2028\u2029]/g)?.length ?? 0);
}

/** Characters that these objects have, without the one that an earlier request with the same key has made. */
function heldBy(objects: readonly (KubeObject & { spec: Texts })[], hash: string | undefined): number {
  const others = objects.filter(({ metadata }) => hash === undefined || metadata.annotations?.[REQUEST_HASH] !== hash);
  return others.reduce((total, { spec }) => total + freeTextOf(spec), 0);
}

/**
 * Counts the free text of a new instance against the share of its tenant.
 * @param hash of the body, when the request has an Idempotency-Key
 * @throws ApiError payload_too_large, tenant_limit, rate_limit_exceeded
 */
export async function takeFreeText(
  { stores, calls }: { stores: { instances: ReadStore<GpuInstance> }; calls: CallLimits },
  { namespace, spec, hash }: { namespace: string; spec: GpuInstanceSpec; hash: string | undefined },
): Promise<void> {
  const length = freeTextOf(spec);
  if (length <= SHORT) return;
  // The rest of the object, with what it keeps of its template, needs a third of the 1.5 MiB that etcd takes.
  // Those of programs as the pod has them.
  const texts = [spec.stats ?? '', spec.requestedRuntype ?? '', ...programTextsOf(spec).map(literal)];
  const bytes = texts.reduce((total, text) => total + storedBytes(text), 0);
  if (bytes > LIMITS.body) {
    throw new ApiError(
      'payload_too_large',
      `Nothing was rented. Kubernetes would store ${FIELDS} in ${bytes} bytes, and ${LIMITS.body} are possible. ` +
        '<, > and & take six bytes each, and $ takes two. Send shorter texts.',
    );
  }
  const held = heldBy(stores.instances.by('namespace', namespace), hash);
  if (held + length > MOST_HELD) {
    throw new ApiError(
      'tenant_limit',
      `Nothing was rented. All instances of a tenant may have ${MOST_HELD} characters of ${FIELDS}. Those of ` +
        `this tenant have ${held}, and this request has ${length}. Send at most ${SHORT}, put them into a template, ` +
        `or delete an instance.`,
    );
  }
  const { total, seconds } = await calls.countText(namespace, length);
  if (total <= MOST_HELD) return;
  throw new ApiError(
    'rate_limit_exceeded',
    `Nothing was rented. A tenant may send ${MOST_HELD} characters of ${FIELDS} per minute, in requests with ` +
      `more than ${SHORT}. Wait ${seconds} s, or send shorter ones.`,
    { retryAfterSeconds: seconds },
  );
}

export interface TemplateText {
  namespace: string;
  spec: InstanceTemplateSpec;
  /** Of the body, when the request has an Idempotency-Key. */
  hash?: string | undefined;
  /** uid of the template that is replaced. */
  uid?: string | undefined;
}

/**
 * Counts the free text of a template against the share of its tenant, which is as large as that of all its instances.
 * @throws ApiError tenant_limit
 */
export function checkTemplateText(templates: ReadStore<InstanceTemplate>, wanted: TemplateText): void {
  const { namespace, spec, hash, uid } = wanted;
  const length = freeTextOf(spec);
  if (length <= SHORT) return;
  const others = templates
    .by('namespace', namespace)
    .filter(({ metadata }) => uid === undefined || metadata.uid !== uid);
  const held = heldBy(others, hash);
  if (held + length <= MOST_HELD) return;
  throw new ApiError(
    'tenant_limit',
    `Nothing was written. All templates of a tenant may have ${MOST_HELD} characters of env, on_start, command and ` +
      `args. The others of this tenant have ${held}, and this one has ${length}. Send at most ${SHORT}, let on_start ` +
      `read what is long from elsewhere, or delete a template.`,
  );
}
