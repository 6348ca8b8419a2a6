import { isObject, type Json } from '../../../src/lib/json.ts';
import type { KindName } from './steps.ts';

/** What a call came to, as far as the two sides must agree. */
export interface Outcome {
  status: number;
  reason?: unknown;
  cause?: unknown;
  seen?: unknown;
}

/** What each API server decides by itself. */
const OWN = new Set(['uid', 'resourceVersion', 'creationTimestamp', 'managedFields', 'selfLink', 'namespace']);
/** Fields of built-in kinds that the model keeps: all others have defaults that it does not know. */
const KEPT: Readonly<Partial<Record<KindName, Readonly<Record<string, readonly string[] | true>>>>> = {
  secret: { data: true },
  lease: { spec: true },
  quota: { spec: true },
  pod: {
    spec: ['nodeName', 'terminationGracePeriodSeconds', 'restartPolicy', 'priority', 'preemptionPolicy'],
    status: ['phase', 'reason', 'message', 'conditions'],
  },
};

function picked(value: unknown, names: readonly string[]): unknown {
  return isObject(value) ? Object.fromEntries(Object.entries(value).filter(([name]) => names.includes(name))) : value;
}

/** Built-in kinds write fields that nobody gave. */
function leanPart(name: string, value: unknown): unknown {
  if (name === 'data') return isObject(value) && Object.keys(value).length > 0 ? value : undefined;
  if (name !== 'status' || !isObject(value) || !Array.isArray(value['conditions'])) return value;
  const conditions = (value['conditions'] as Json[]).map(
    ({ lastProbeTime: _probe, lastTransitionTime: _transition, ...condition }) => condition,
  );
  return { ...value, conditions };
}

function metadataOf(kind: KindName, metadata: Json): Json {
  const { deletionTimestamp, ownerReferences, ...rest } = metadata;
  const left = Object.entries(rest).filter(
    // Pods have generations too, which nothing reads.
    ([name]) => !OWN.has(name) && (name !== 'generation' || kind !== 'pod'),
  );
  return {
    ...Object.fromEntries(left),
    ...(deletionTimestamp !== undefined && { isBeingDeleted: true }),
    ...(Array.isArray(ownerReferences) && {
      ownerReferences: (ownerReferences as Json[]).map(({ uid: _uid, ...owner }) => owner),
    }),
  };
}

/** Kubernetes marks a pod that no node has and that ends as failed, some time in twenty seconds. */
function isNowhere({ metadata, spec }: Json): boolean {
  return (
    (metadata as Json)['deletionTimestamp'] !== undefined && (spec as Json | undefined)?.['nodeName'] === undefined
  );
}

/** An object without what differs from one API server to another. */
export function comparable(kind: KindName, object: Json): Json {
  const metadata = metadataOf(kind, object['metadata'] as Json);
  const kept = KEPT[kind];
  if (kept === undefined) {
    const { apiVersion: _version, kind: _kind, ...rest } = object;
    return { ...rest, metadata };
  }
  const fields = Object.entries(kept).flatMap(([name, names]) => {
    if (name === 'status' && isNowhere(object)) return [];
    const value = leanPart(name, object[name] ?? (names === true && name === 'spec' ? {} : undefined));
    if (value === undefined) return [];
    return [[name, names === true ? value : picked(value, names)] as const];
  });
  return { metadata, ...Object.fromEntries(fields) };
}

export function nameOf(object: Json): string {
  return String((object['metadata'] as Json)['name']);
}

function causeOf(details: unknown): object {
  if (!isObject(details) || !Array.isArray(details['causes'])) return {};
  // The model looks no further than the first.
  const [first] = details['causes'] as Json[];
  return { cause: first && { reason: first['reason'], field: first['field'] } };
}

export function refusal(status: number, { reason, details }: Json): Outcome {
  return { status, reason: reason === '' ? undefined : reason, ...causeOf(details) };
}
