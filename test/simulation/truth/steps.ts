import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { LEASES, PODS, RESOURCE_QUOTAS, type ResourceType, SECRETS } from '../../../src/kube/types.ts';
import type { Json } from '../../../src/lib/json.ts';
import type { Chance } from '../clock/chance.ts';
import type { Operation } from '../api/patch.ts';

export const TYPES = {
  secret: SECRETS,
  lease: LEASES,
  key: API_KEYS,
  instance: GPU_INSTANCES,
  pod: PODS,
  quota: RESOURCE_QUOTAS,
} as const satisfies Record<string, ResourceType>;

export type KindName = keyof typeof TYPES;
type Part = 'status' | undefined;

/**
 * One call, as plain data. A text that begins with $ stands for what this side has seen of an object: `$uid key/a`,
 * `$version key/a`, and `$first key/a` for the version that it had first.
 */
export type Step = {
  kind: KindName;
  /** Whether what runs in the cluster comes to rest after it. */
  rests?: true;
} & (
  | { do: 'create'; name: string; body: Json; dryRun?: true; by: string }
  | { do: 'get'; name: string }
  | { do: 'list'; labelSelector?: string; limit?: number }
  /** The object as it was seen last, with a change. */
  | { do: 'replace'; name: string; part?: Part; change: Json; by: string }
  | { do: 'merge'; name: string; part?: Part; body: Json; by: string }
  | { do: 'json'; name: string; part?: Part; body: readonly Operation[]; by: string }
  | { do: 'strategic'; name: string; part?: Part; body: Json; by: string }
  /** Server-side apply. */
  | { do: 'apply'; name: string; part?: Part; body: Json; by: string; isForced?: true }
  | { do: 'delete'; name: string; body: Json }
  /** From now, with what is there (`initial`), or from a version that was seen. */
  | { do: 'watch'; from: string }
  /** The namespace is deleted. */
  | { do: 'end' }
);

const NAMES = ['a', 'b'];
/** Field managers. */
const MANAGERS = ['one', 'two'];
const HOLD = 'berth.dev/test-hold';
const OTHER_HOLD = 'berth.dev/test-other';
/** That of no object. */
const STRANGE_UID = '00000000-0000-4000-8000-000000000000';

const BARE: Readonly<Record<Exclude<KindName, 'quota'>, Json>> = {
  secret: { data: { k: 'dg==' } },
  lease: { spec: { holderIdentity: 'one', leaseDurationSeconds: 15 } },
  key: { spec: { hash: 'a'.repeat(64), prefix: 'berth_a', unknown: 1 } },
  instance: { spec: { gpu: { count: 1 } } },
  pod: {
    spec: { schedulerName: 'nobody', automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] },
  },
};

const CHANGES: Readonly<Record<KindName, readonly Json[]>> = {
  secret: [{ data: { k: 'dw==' } }, { data: { l: 'dg==' } }, { data: { k: null } }],
  lease: [{ spec: { holderIdentity: 'two' } }, { spec: { leaseTransitions: 2 } }, { spec: { holderIdentity: null } }],
  key: [
    { spec: { displayName: 'other' } },
    { spec: { displayName: null } },
    { spec: { limits: { requestsPerMinute: 5, unknown: 1 } } },
    { spec: { limits: null } },
    { spec: { scopes: ['models'] } },
    { spec: { unknown: { deep: 1 } } },
    { unknown: 1 },
    { status: { lastUsedTime: '2026-01-01T00:00:00Z' } },
  ],
  instance: [
    { spec: { displayName: 'other' } },
    { spec: { state: 'Stopped' } },
    { spec: { diskGb: 20 } },
    { spec: { diskGb: 30 } },
    { spec: { gpu: { count: 2 } } },
    { spec: { env: [{ name: 'A', value: 'b' }] } },
    { spec: { env: null } },
    { status: { phase: 'Running' } },
  ],
  pod: [{ status: { phase: 'Running' } }],
  quota: [{ spec: { hard: { 'count/secrets': '3' } } }],
};

const STATUS: Readonly<Partial<Record<KindName, readonly Json[]>>> = {
  key: [
    { status: { lastUsedTime: '2026-01-01T00:00:00Z' } },
    { status: { lastUsedTime: '2026-01-02T00:00:00Z', unknown: 1 } },
    { status: { lastUsedTime: null } },
    { status: { observedGeneration: 1 } },
    { status: null },
    { status: { observedGeneration: 2 }, spec: { displayName: 'by status' } },
    { status: { observedGeneration: 3 }, metadata: { labels: { by: 'status' } } },
    { status: { observedGeneration: 3 }, metadata: { finalizers: [HOLD] } },
  ],
  instance: [
    { status: { phase: 'Running' } },
    { status: { phase: 'Queued', unknown: 1 } },
    { status: { phase: null } },
    { status: null },
    { status: { phase: 'Running' }, metadata: { annotations: { by: 'status' } } },
  ],
  pod: [
    { status: { phase: 'Running' } },
    { status: { phase: 'Succeeded' } },
    { status: { phase: 'Failed', reason: 'Evicted', message: 'why' } },
    { status: { conditions: [{ type: 'berth.dev/Test', status: 'True', reason: 'Test' }] } },
    { status: { phase: 'Running' }, metadata: { labels: { by: 'status' } } },
    { status: { phase: 'Running' }, metadata: { finalizers: null } },
  ],
};

const METADATA: readonly Json[] = [
  { labels: { x: '1' } },
  { labels: { x: '2', y: '1' } },
  { labels: { x: null } },
  { labels: null },
  { annotations: { x: '1' } },
  { annotations: null },
  { finalizers: [HOLD] },
  { finalizers: [HOLD, OTHER_HOLD] },
  { finalizers: [OTHER_HOLD] },
  { finalizers: [] },
  { finalizers: null },
  { finalizers: null },
  { generation: 7 },
  { creationTimestamp: '2026-01-01T00:00:00Z' },
  { creationTimestamp: null },
  { deletionTimestamp: '2026-01-01T00:00:00Z' },
  { deletionGracePeriodSeconds: 5 },
  { name: 'other' },
  { namespace: 'other' },
  { resourceVersion: null },
  { unknown: 1 },
  { generateName: 'a-' },
];

/** A PUT that makes a Lease takes the end of it as it comes. */
const LIVING = METADATA.filter((one) => Object.keys(one).every((name) => !name.startsWith('deletion')));

/** A node whose kubelet says nothing. */
export const SILENT_NODE = 'truth-silent';
const MARKER = 'marker-';

/** An object that is no part of any sequence. */
export function markerOf(kind: KindName, index: number): Json {
  const { group, version, kind: written } = TYPES[kind];
  const apiVersion = group === '' ? version : `${group}/${version}`;
  const body = kind === 'quota' ? { spec: { hard: {} } } : BARE[kind];
  return { apiVersion, kind: written, ...body, metadata: { name: `${MARKER}${index}` } };
}

export function isMarker(name: string): boolean {
  return name.startsWith(MARKER);
}

function operationsOf(kind: KindName, name: string): readonly (readonly Operation[])[] {
  const of = `${kind}/${name}`;
  const sameUid: Operation = { op: 'test', path: '/metadata/uid', value: `$uid ${of}` };
  return [
    [sameUid, { op: 'add', path: '/metadata/labels', value: { x: '3' } }],
    [
      { op: 'test', path: '/metadata/uid', value: STRANGE_UID },
      { op: 'add', path: '/metadata/labels', value: {} },
    ],
    [
      { op: 'test', path: '/metadata/resourceVersion', value: `$version ${of}` },
      { op: 'add', path: '/metadata/annotations', value: { a: 'b' } },
    ],
    [
      { op: 'test', path: '/metadata/resourceVersion', value: `$first ${of}` },
      { op: 'remove', path: '/metadata/annotations' },
    ],
    [{ op: 'add', path: '/metadata/labels/x', value: '4' }],
    [{ op: 'replace', path: '/metadata/labels/x', value: '5' }],
    [{ op: 'remove', path: '/metadata/labels/x' }],
    [{ op: 'remove', path: '/metadata/finalizers' }],
    [
      { op: 'test', path: '/metadata/finalizers/0', value: HOLD },
      { op: 'remove', path: '/metadata/finalizers/0' },
    ],
    [{ op: 'add', path: '/metadata/finalizers/-', value: OTHER_HOLD }],
    [{ op: 'add', path: '/metadata/finalizers', value: [HOLD] }],
    [{ op: 'replace', path: '/metadata/annotations', value: { r: '1' } }],
    [
      { op: 'test', path: '/metadata/labels', value: null },
      { op: 'add', path: '/metadata/labels', value: { none: 'before' } },
    ],
    [
      { op: 'test', path: '/metadata/labels/x', value: null },
      { op: 'add', path: '/metadata/labels/x', value: '6' },
    ],
    [{ op: 'test', path: '/status/none/deeper', value: null }],
    [{ op: 'copy', from: '/metadata/labels/x', path: '/metadata/labels/z' }],
    [{ op: 'move', from: '/metadata/labels/x', path: '/metadata/labels/y' }],
    [{ op: 'replace', path: '/metadata/resourceVersion', value: '1' }],
    [],
  ];
}

function statusOperationsOf(kind: KindName, name: string): readonly (readonly Operation[])[] {
  const sameUid: Operation = { op: 'test', path: '/metadata/uid', value: `$uid ${kind}/${name}` };
  const field = kind === 'key' ? 'lastUsedTime' : 'phase';
  const value = kind === 'key' ? '2026-01-03T00:00:00Z' : 'Running';
  return [
    [sameUid, { op: 'test', path: '/status', value: null }, { op: 'add', path: '/status', value: { [field]: value } }],
    [sameUid, { op: 'add', path: `/status/${field}`, value }],
    [sameUid, { op: 'add', path: `/status/${field}`, value: null }, { op: 'remove', path: `/status/${field}` }],
    ...(kind === 'pod' ? [] : [[{ op: 'add', path: '/status/unknown', value: 1 } as const]]),
    [{ op: 'add', path: '/metadata/labels', value: { by: 'status' } }],
  ];
}

/** Lists that are merged, what is taken out of them, and maps of which only some fields stay. */
const STRATEGIC: readonly Json[] = [
  { metadata: { finalizers: [HOLD] } },
  { metadata: { finalizers: [OTHER_HOLD, HOLD] } },
  { metadata: { finalizers: null } },
  { metadata: { '$deleteFromPrimitiveList/finalizers': [HOLD] } },
  { metadata: { '$deleteFromPrimitiveList/finalizers': [HOLD], finalizers: [OTHER_HOLD] } },
  { metadata: { labels: { x: '1', z: '2' } } },
  { metadata: { labels: { x: null } } },
  { metadata: { labels: { $retainKeys: ['x'], x: '7' } } },
  { metadata: { labels: { $retainKeys: ['x'], y: '7' } } },
  { metadata: { labels: { $patch: 'replace', y: '8' } } },
  { metadata: { labels: { $patch: 'delete' } } },
  { metadata: { labels: { $patch: 'strange' } } },
  { metadata: { annotations: { n: null, x: '2' } } },
  { metadata: { annotations: null } },
];

function conditions(...list: readonly Json[]): Json {
  return { status: { conditions: list } };
}

const STRATEGIC_OF: Readonly<Partial<Record<KindName, readonly Json[]>>> = {
  secret: [{ data: { k: 'dw==' } }, { data: { l: 'dg==', k: null } }, { data: { $retainKeys: ['l'], l: 'dw==' } }],
  lease: [{ spec: { holderIdentity: 'three' } }, { spec: { holderIdentity: null, leaseTransitions: 3 } }],
  pod: [
    { spec: { containers: [{ name: 'c', image: 'j' }] } },
    { spec: { activeDeadlineSeconds: 1_000_000, containers: [{ name: 'c', image: 'k' }] } },
  ],
};

const STRATEGIC_STATUS: readonly Json[] = [
  conditions({ type: 'berth.dev/Test', status: 'False' }),
  conditions({ type: 'berth.dev/Test', status: 'True', reason: 'Other' }),
  conditions({ type: 'berth.dev/Other', status: 'True' }, { type: 'berth.dev/Test', status: 'True' }),
  conditions({ type: 'berth.dev/Test', $patch: 'delete' }),
  conditions({ type: 'berth.dev/Other', status: 'Unknown' }, { $patch: 'replace' }),
  { status: { phase: 'Running', message: null } },
];

const APPLIED: Readonly<Record<Exclude<KindName, 'quota'>, readonly Json[]>> = {
  secret: [{ data: { k: 'dg==' } }, { data: { k: 'dw==', l: 'dg==' } }, { data: { l: 'dg==' } }],
  lease: [{ spec: {} }, { spec: { holderIdentity: 'one' } }, { spec: { holderIdentity: 'two', leaseTransitions: 1 } }],
  key: [
    {},
    { displayName: 'x' },
    { displayName: 'y', scopes: ['models'] },
    { scopes: ['models', 'compute:read'] },
    { limits: { requestsPerMinute: 5 } },
    { limits: { requestsPerMinute: 6, tokensPerMinute: 7 } },
  ],
  instance: [
    {},
    { displayName: 'x' },
    { displayName: 'y', env: [{ name: 'A', value: '1' }] },
    { env: [{ name: 'B', value: '1' }] },
    {
      env: [
        { name: 'B', value: '2' },
        { name: 'A', value: '1' },
      ],
    },
    { powerState: 'Stopped', sshKeyIds: [2, 1] },
    { sshKeyIds: [1] },
  ],
  pod: [{}],
};

const APPLIED_STATUS: Readonly<Partial<Record<KindName, Json>>> = {
  key: { lastUsedTime: '2026-01-01T00:00:00Z' },
  instance: { phase: 'Running' },
};

const APPLIED_METADATA: readonly Json[] = [
  {},
  { labels: { x: '1' } },
  { labels: { x: '2', y: '1' } },
  { annotations: { x: '1' }, labels: {} },
  { finalizers: [HOLD] },
  { finalizers: [OTHER_HOLD, HOLD] },
];

/** A configuration has what its kind must have, so that no field goes without which there is no object. */
function configOf(chance: Chance, kind: Exclude<KindName, 'quota'>, of: string): Json {
  const fields = chance.one(APPLIED[kind]);
  const metadata = { ...claimsOf(chance, of), ...chance.one(APPLIED_METADATA) };
  if (kind === 'secret' || kind === 'lease') return { ...fields, metadata };
  const { unknown: _unknown, ...bare } = BARE[kind]['spec'] as Json;
  const strange = chance.is(0.05) && kind !== 'pod' ? { unknown: 1 } : {};
  return { spec: { ...bare, ...fields, ...strange }, metadata };
}

function appliedStep(chance: Chance, kind: Exclude<KindName, 'quota'>, name: string, part: { part?: Part }): Step {
  const isStatus = part.part !== undefined;
  const status = APPLIED_STATUS[kind];
  const body = isStatus ? { metadata: {}, ...(status && { status }) } : configOf(chance, kind, `${kind}/${name}`);
  const how = { by: chance.one(MANAGERS), ...(chance.is(0.4) && { isForced: true as const }) };
  return { do: 'apply', kind, name, ...part, body, ...how };
}

function strategicStep(chance: Chance, kind: KindName, name: string, part: { part?: Part }): Step {
  const all = part.part === undefined ? [...STRATEGIC, ...(STRATEGIC_OF[kind] ?? []), {}] : STRATEGIC_STATUS;
  const { metadata = {}, ...change } = chance.one(all) as { metadata?: Json };
  const body = { ...change, metadata: { ...claimsOf(chance, `${kind}/${name}`), ...metadata } };
  return { do: 'strategic', kind, name, ...part, body, by: chance.one(MANAGERS) };
}

/** What else comes with a write: whose it claims to be, and at which version. */
function claimsOf(chance: Chance, of: string): Json {
  return chance.weighted<Json>([
    [6, {}],
    [2, { resourceVersion: `$version ${of}` }],
    [1, { resourceVersion: `$first ${of}` }],
    [1, { uid: `$uid ${of}` }],
    [1, { uid: STRANGE_UID }],
  ]);
}

function created(chance: Chance, kind: Exclude<KindName, 'quota'>, name: string): Step {
  const metadata = chance.weighted<Json>([
    [8, {}],
    [2, { labels: { x: '1' } }],
    [3, { finalizers: [HOLD] }],
    [1, { finalizers: [HOLD, OTHER_HOLD] }],
    [1, { resourceVersion: '1' }],
    [1, { uid: STRANGE_UID, generation: 4, creationTimestamp: '2026-01-01T00:00:00Z' }],
    [1, { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 3 }],
    [1, { labels: {}, annotations: {}, unknown: 1 }],
  ]);
  const more: Json = chance.is(0.15) ? { status: { phase: 'Running', observedGeneration: 3 } } : {};
  const bare = BARE[kind];
  const spec: Json =
    kind !== 'pod'
      ? {}
      : {
          spec: {
            ...(bare['spec'] as Json),
            ...(chance.is(0.6) && { nodeName: SILENT_NODE }),
            ...(chance.is(0.3) && { terminationGracePeriodSeconds: chance.one([0, 1, 5]) }),
          },
        };
  const body = { metadata, ...bare, ...spec, ...(kind === 'secret' || kind === 'lease' ? {} : more) };
  return { do: 'create', kind, name, body, ...(chance.is(0.05) && { dryRun: true }), by: chance.one(MANAGERS) };
}

function changeOf(chance: Chance, kind: KindName, of: string): Json {
  const { metadata = {}, ...change } = (
    chance.is(0.5)
      ? { metadata: chance.one(kind === 'lease' ? LIVING : METADATA) }
      : chance.is(0.1)
        ? {}
        : chance.one(CHANGES[kind])
  ) as { metadata?: Json };
  const claims = claimsOf(chance, of);
  // A refusal has one cause.
  return { ...change, metadata: claims['uid'] === STRANGE_UID ? claims : { ...claims, ...metadata } };
}

function statusOf(chance: Chance, kind: KindName, of: string): Json {
  const { metadata = {}, ...change } = chance.one(STATUS[kind] ?? [{}]) as { metadata?: Json };
  return { ...change, metadata: { ...claimsOf(chance, of), ...metadata } };
}

function deleted(chance: Chance, kind: KindName, name: string, isOwner: boolean): Step {
  const of = `${kind}/${name}`;
  const preconditions = chance.weighted<Json>([
    [8, {}],
    [2, { preconditions: { uid: `$uid ${of}` } }],
    [1, { preconditions: { uid: STRANGE_UID } }],
    [1, { preconditions: { resourceVersion: `$version ${of}` } }],
    [1, { preconditions: { resourceVersion: `$first ${of}`, uid: `$uid ${of}` } }],
  ]);
  const grace = chance.weighted<Json>([
    [4, {}],
    [2, { gracePeriodSeconds: 0 }],
    [1, { gracePeriodSeconds: 1 }],
    [1, { gracePeriodSeconds: 100 }],
  ]);
  const cascade = isOwner
    ? chance.weighted<Json>([
        [1, {}],
        [1, { propagationPolicy: 'Background' }],
        [2, { propagationPolicy: 'Foreground' }],
        [1, { propagationPolicy: 'Orphan' }],
      ])
    : chance.is(0.2)
      ? { propagationPolicy: 'Background' }
      : {};
  return { do: 'delete', kind, name, body: { ...preconditions, ...grace, ...cascade } };
}

function anyStep(chance: Chance, kinds: readonly Exclude<KindName, 'quota'>[], isOwned: boolean): Step {
  const kind = chance.one(kinds);
  const name = chance.one(NAMES);
  const of = `${kind}/${name}`;
  const part: { part?: Part } = STATUS[kind] !== undefined && chance.is(0.45) ? { part: 'status' } : {};
  const isStatus = part.part !== undefined;
  return chance.weighted<() => Step>([
    [5, () => created(chance, kind, name)],
    [1, () => ({ do: 'get', kind, name })],
    [
      1,
      () => ({
        do: 'list',
        kind,
        ...(chance.is(0.5) && { labelSelector: chance.one(['x', 'x=1', 'none=1']) }),
        ...(chance.is(0.3) && { limit: 1 }),
      }),
    ],
    [
      3,
      () => ({
        do: 'replace',
        kind,
        name,
        ...part,
        change: isStatus ? statusOf(chance, kind, of) : changeOf(chance, kind, of),
        by: chance.one(MANAGERS),
      }),
    ],
    [
      6,
      () => ({
        do: 'merge',
        kind,
        name,
        ...part,
        body: isStatus ? statusOf(chance, kind, of) : changeOf(chance, kind, of),
        by: chance.one(MANAGERS),
      }),
    ],
    [
      4,
      () => ({
        do: 'json',
        kind,
        name,
        ...part,
        body: chance.one(isStatus ? statusOperationsOf(kind, name) : operationsOf(kind, name)),
        by: chance.one(MANAGERS),
      }),
    ],
    [3, () => strategicStep(chance, kind, name, part)],
    [6, () => appliedStep(chance, kind, name, part)],
    [3, () => deleted(chance, kind, name, isOwned && kind === 'instance')],
    [0.7, () => ({ do: 'watch', kind, from: chance.one(['now', 'initial', `$version ${of}`]) })],
  ])();
}

/** Pods that instances own, and all ways in which the owner goes. */
function ownedStep(chance: Chance): Step {
  const step = anyStep(chance, ['instance', 'pod'], true);
  if (step.do === 'get' || step.do === 'list' || step.do === 'watch') return step;
  // The status of an object moves nothing.
  if ('part' in step) return step;
  if (step.do !== 'create' || step.kind !== 'pod') return { ...step, rests: true };
  const references = Array.from(
    {
      length: chance.weighted([
        [1, 0],
        [5, 1],
        [1, 2],
      ] as const),
    },
    (_, index) => {
      const name = NAMES[index] ?? '';
      const uid = chance.is(0.1) ? STRANGE_UID : `$uid instance/${name}`;
      const { group, version, kind } = TYPES.instance;
      return {
        apiVersion: `${group}/${version}`,
        kind,
        name,
        uid,
        ...(chance.is(0.7) && { blockOwnerDeletion: true }),
        ...(index === 0 && { controller: true }),
      };
    },
  );
  const metadata = { ...(step.body['metadata'] as Json), ownerReferences: references };
  return { ...step, body: { ...step.body, metadata }, rests: true };
}

/**
 * A quota of Secrets, and Secrets up to it and beyond. No name comes twice: Kubernetes counts an object that it then
 * refuses for its name, and corrects that minutes later.
 */
function countedStep(chance: Chance, index: number): Step {
  if (chance.is(0.2)) {
    const body = { spec: { hard: { 'count/secrets': String(chance.int(0, 2)) } } };
    return { do: 'create', kind: 'quota', name: 'a', body, rests: true, by: 'one' };
  }
  if (chance.is(0.1)) return { do: 'delete', kind: 'quota', name: 'a', body: {}, rests: true };
  if (chance.is(0.6)) {
    const body = { ...BARE.secret, metadata: chance.is(0.2) ? { finalizers: [HOLD] } : {} };
    return { do: 'create', kind: 'secret', name: `s-${index}`, body, rests: true, by: 'one' };
  }
  const name = `s-${chance.int(0, index)}`;
  if (chance.is(0.3))
    return { do: 'merge', kind: 'secret', name, body: { metadata: { finalizers: null } }, by: 'one', rests: true };
  return { ...deleted(chance, 'secret', name, false), rests: true };
}

const PLAIN = ['secret', 'lease', 'key', 'instance', 'pod'] as const;

/** The sequence of this number: calls on few objects, so that they meet. */
export function stepsOf(chance: Chance, most: number): Step[] {
  const draw = chance.weighted<(index: number) => Step>([
    [4, () => anyStep(chance, kinds, false)],
    [2, () => ownedStep(chance)],
    [1, (index) => countedStep(chance, index)],
  ]);
  const kinds = [chance.one(PLAIN), chance.one(PLAIN)];
  const steps = Array.from({ length: most }, (_, index) => draw(index));
  if (!chance.is(0.1)) return steps;
  const late = Array.from({ length: 3 }, (_, index) => atOnce(draw(most + index)));
  return [...steps, { do: 'end', kind: 'secret' }, ...late, { do: 'list', kind: 'pod', rests: true }];
}

/** The step, without a rest after it. */
function atOnce({ rests: _rests, ...step }: Step): Step {
  return step;
}
