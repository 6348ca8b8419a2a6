import { isObject, type Json } from '../../../src/lib/json.ts';
import type { KindName } from './steps.ts';

/** What a call came to, as far as the two sides must agree. */
export interface Outcome {
  status: number;
  reason?: unknown;
  cause?: unknown;
  seen?: unknown;
  /** Who owns which fields, by manager. */
  owners?: unknown;
}

/** What each API server decides by itself. */
const OWN = new Set(['uid', 'resourceVersion', 'creationTimestamp', 'managedFields', 'selfLink', 'namespace']);
/** Fields of built-in kinds that the model keeps: all others have defaults that it does not know. */
const KEPT: Readonly<Partial<Record<KindName, Readonly<Record<string, readonly string[] | true>>>>> = {
  secret: { data: true },
  lease: { spec: true },
  quota: { spec: true },
  pod: {
    spec: [
      'containers',
      'activeDeadlineSeconds',
      'nodeName',
      'terminationGracePeriodSeconds',
      'restartPolicy',
      'priority',
      'preemptionPolicy',
    ],
    status: ['phase', 'reason', 'message', 'conditions'],
  },
};

function picked(value: unknown, names: readonly string[]): unknown {
  return isObject(value) ? Object.fromEntries(Object.entries(value).filter(([name]) => names.includes(name))) : value;
}

/** Built-in kinds write fields that nobody gave. */
function leanPart(name: string, value: unknown): unknown {
  if (name === 'data') return isObject(value) && Object.keys(value).length > 0 ? value : undefined;
  if (name === 'spec' && isObject(value) && Array.isArray(value['containers'])) {
    const containers = (value['containers'] as Json[]).map((one) => picked(one, ['name', 'image']));
    return { ...value, containers };
  }
  if (name !== 'status' || !isObject(value) || !Array.isArray(value['conditions'])) return value;
  const conditions = (value['conditions'] as Json[]).map(
    ({ lastProbeTime: _probe, lastTransitionTime: _transition, ...condition }) => condition,
  );
  const { conditions: _conditions, ...rest } = value;
  return conditions.length > 0 ? { ...rest, conditions } : rest;
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

/** Kinds of which the model knows all fields, and with them what is owned. */
const OWNED: ReadonlySet<KindName> = new Set(['key', 'instance']);

function withoutUids(fields: unknown): unknown {
  if (!isObject(fields)) return fields;
  const entries = Object.entries(fields).map(([name, inner]) => [
    name.startsWith('k:{"uid"') ? 'k:uid' : name,
    withoutUids(inner),
  ]);
  return Object.fromEntries(entries);
}

export function ownersIn(kind: KindName, { metadata }: Json): unknown {
  if (!OWNED.has(kind)) return undefined;
  const entries = ((metadata as Json)['managedFields'] ?? []) as Json[];
  return Object.fromEntries(
    entries.map(({ manager, operation, subresource = '', fieldsV1 }) => [
      `${String(operation)}/${String(subresource)}/${String(manager)}`,
      withoutUids(fieldsV1),
    ]),
  );
}

export function withoutOwners(object: Json): Json {
  const { managedFields: _fields, ...metadata } = object['metadata'] as Json;
  return { ...object, metadata };
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

interface Owned {
  field: unknown;
  by: string | undefined;
}

function byField(a: Owned, b: Owned): number {
  return `${String(a.field)} ${a.by}` < `${String(b.field)} ${b.by}` ? -1 : 1;
}

function causeOf(details: unknown): object {
  if (!isObject(details) || !Array.isArray(details['causes'])) return {};
  // The model looks no further than the first.
  const causes = details['causes'] as Json[];
  const [first] = causes;
  // Managers come in any order.
  if (first?.['reason'] === 'FieldManagerConflict')
    return {
      cause: causes
        .map(({ field, message }) => ({ field, by: /"([^"]*)"/u.exec(String(message))?.[1] }))
        .toSorted(byField),
    };
  return { cause: first && { reason: first['reason'], field: first['field'] } };
}

export function refusal(status: number, { reason, details }: Json): Outcome {
  return { status, reason: reason === '' ? undefined : reason, ...causeOf(details) };
}
