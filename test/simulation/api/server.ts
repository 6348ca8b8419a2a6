import { FINALIZER } from '../../../src/resources/cleanup.ts';
import { isObject, type Json, sameJson } from '../../../src/lib/json.ts';
import {
  keyOf,
  type KubeObject,
  type Namespace,
  NAMESPACES,
  type ObjectRef,
  type Pod,
  PODS,
  PERSISTENT_VOLUME_CLAIMS,
  PRIORITY_CLASSES,
  type PriorityClass,
  RESOURCE_QUOTAS,
  type ResourceQuota,
  type ResourceType,
} from '../../../src/kube/types.ts';
import type { Chance } from '../clock/chance.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import {
  alreadyExists,
  badRequest,
  conflict,
  fieldConflict,
  forbidden,
  invalid,
  MODIFIED,
  notFound,
  patchNotApplied,
  Failure,
} from './failure.ts';
import { DEVICE_KINDS, type Kind, KINDS, structured } from './kinds.ts';
import { fieldsV1, unknownIn } from './fields.ts';
import {
  afterUpdate,
  applied,
  FieldConflict,
  type Manager,
  managedFields,
  type Managers,
  NO_MANAGERS,
} from './managers.ts';
import { jsonPatch, mergePatch, type Operation, PatchError } from './patch.ts';
import { exceeded, takenByPod, withMore } from './quotas.ts';
import { settled } from './settled.ts';
import { type Change, Collection } from './store.ts';
import { PatchFormatError, strategicPatch } from './strategic.ts';

export interface Deletion {
  uid?: string | undefined;
  resourceVersion?: string | undefined;
  gracePeriodSeconds?: number | undefined;
  propagationPolicy?: 'Background' | 'Foreground' | 'Orphan' | undefined;
}

export type Subresource = 'status' | undefined;

/** How an object is written: which part of it, and by which field manager. */
export interface Writing {
  subresource?: Subresource;
  by?: string;
}

/** Whether an apply takes what others own. */
export interface Applying extends Writing {
  isForced: boolean;
}

const FOREGROUND = 'foregroundDeletion';
const ORPHAN = 'orphan';
/** As Kubernetes protects a volume that a pod uses. */
export const PVC_PROTECTION = 'kubernetes.io/pvc-protection';

function isEnded(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

/** Fields beside metadata and status, which a generation counts. */
function specOf(object: KubeObject): Json {
  const { metadata: _metadata, status: _status, ...rest } = object as unknown as Json;
  return rest;
}

/**
 * The API server and etcd, in memory. Each call is carried out at once and whole; `Network` decides when it arrives, and
 * whether its answer does. Throws Failure.
 */
export class ApiServer {
  readonly #time: VirtualTime;
  readonly #chance: Chance;
  readonly #collections: Collection[] = [];
  /** By group and plural. */
  readonly #groups = new Map<string, Map<string, Collection>>();
  #version = 1_000;
  #uids = 0;
  /** Whether it knows Dynamic Resource Allocation. */
  readonly servesDevices: boolean;
  /** Whether admission adds Berth's finalizer to new instances, as the chart has it on a Kubernetes that can. */
  addsFinalizer = false;
  /** Called with each change, at once: for what runs beside the API server. */
  readonly #followers = new Set<(change: Change) => void>();
  /** Who owns which fields of an object, as it is. */
  readonly #managers = new WeakMap<KubeObject, Managers>();

  constructor(time: VirtualTime, chance: Chance, servesDevices: boolean) {
    this.#time = time;
    this.#chance = chance;
    this.servesDevices = servesDevices;
    for (const kind of servesDevices ? [...KINDS, ...DEVICE_KINDS] : KINDS) {
      const collection = new Collection(kind);
      collection.listeners.add((change) => {
        for (const follower of this.#followers) follower(change);
      });
      this.#collections.push(collection);
      const { group, plural } = kind.type;
      const known = this.#groups.get(group);
      if (known === undefined) this.#groups.set(group, new Map([[plural, collection]]));
      else known.set(plural, collection);
    }
  }

  get version(): number {
    return this.#version;
  }

  follow(follower: (change: Change) => void): () => void {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  collection(type: Pick<ResourceType, 'group' | 'plural'>): Collection {
    const found = this.#groups.get(type.group)?.get(type.plural);
    if (found === undefined) throw new Failure(404, 'NotFound', 'the server could not find the requested resource', {});
    return found;
  }

  collections(): Iterable<Collection> {
    return this.#collections;
  }

  compact(): void {
    for (const collection of this.#collections) collection.compact(this.#version);
  }

  find<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef): T | undefined {
    return this.collection(type).get(ref) as T | undefined;
  }

  get<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef): T {
    const found = this.find(type, ref);
    if (found === undefined) throw notFound(type, ref.name);
    return found;
  }

  list<T extends KubeObject>(type: ResourceType<T>, namespace?: string): T[] {
    return [...this.collection(type).in(namespace)] as T[];
  }

  /** What `metadata.managedFields` of an object that was answered says. */
  managedFields(object: KubeObject): Json[] {
    return managedFields(this.#managers.get(object) ?? NO_MANAGERS);
  }

  create<T extends KubeObject>(
    type: ResourceType<T>,
    body: KubeObject,
    options: { dryRun?: boolean; by?: string; managers?: Managers } = {},
  ): T {
    const collection = this.collection(type);
    const { kind } = collection;
    const { name } = body.metadata;
    if (type.namespaced) this.#admitTo(type, body.metadata.namespace ?? '', name);
    const {
      resourceVersion,
      uid: _uid,
      deletionTimestamp: _gone,
      deletionGracePeriodSeconds: _grace,
      ...metadata
    } = body.metadata;
    if (type.namespaced) this.#admitByQuota(type, body);
    if (resourceVersion !== undefined && options.dryRun !== true)
      throw new Failure(500, '', 'resourceVersion should not be set on objects to be created');
    if (collection.get(body.metadata) !== undefined) throw alreadyExists(type, name);
    const made = this.#shaped(kind, {
      ...body,
      apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
      kind: type.kind,
      metadata: lean({
        ...metadata,
        uid: this.#uid(),
        creationTimestamp: this.#time.seconds,
        ...(kind.isCustom && { generation: 1 }),
      }),
    });
    const { status: _status, ...bare } = made as KubeObject & { status?: unknown };
    const asked = kind.hasStatus && type.kind !== 'Node' ? bare : made;
    const whole = this.#completed(type, asked);
    if (options.dryRun === true) return whole as T;
    const stored = this.#versioned(whole);
    const { managers = afterUpdate(NO_MANAGERS, updater(options), { after: asked, schema: kind.fields }) } = options;
    this.#managers.set(stored, managers);
    collection.put(this.#version, undefined, stored);
    return stored as T;
  }

  replace<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, body: KubeObject, how: Writing = {}): T {
    const collection = this.collection(type);
    assertNamed(type, ref, body);
    const before = collection.get(ref);
    const isMade = collection.kind.isMadeByUpdate === true && how.subresource === undefined;
    if (before === undefined && !isMade) throw notFound(type, ref.name);
    const { uid } = body.metadata;
    if (uid !== undefined && uid !== before?.metadata.uid) throw strangeUid(type, ref.name, before, uid);
    if (before === undefined) return this.create(type, withoutVersion(body), { by: how.by });
    return this.#update(collection, before, body, updater(how)) as T;
  }

  merge<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, body: unknown, how: Writing = {}): T {
    const collection = this.collection(type);
    this.#assertPart(collection.kind, ref, how.subresource);
    const before = collection.get(ref);
    if (before === undefined) throw notFound(type, ref.name);
    return this.#update(collection, before, mergePatch(before, body) as KubeObject, updater(how)) as T;
  }

  /** Only built-in kinds have it. */
  strategic<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, body: Json, how: Writing = {}): T {
    const collection = this.collection(type);
    const { kind } = collection;
    this.#assertPart(kind, ref, how.subresource);
    const before = collection.get(ref);
    if (before === undefined) throw notFound(type, ref.name);
    try {
      const wanted = strategicPatch(before as unknown as Json, body, kind.fields) as unknown as KubeObject;
      return this.#update(collection, before, wanted, updater(how)) as T;
    } catch (error) {
      throw error instanceof PatchFormatError ? badPatch(type, ref, error) : error;
    }
  }

  /** Server-side apply. */
  apply<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    config: KubeObject,
    { by = '', isForced, subresource }: Applying,
  ): T {
    const collection = this.collection(type);
    const { kind } = collection;
    this.#assertPart(kind, ref, subresource);
    const before = collection.get(ref);
    if (before === undefined && subresource !== undefined) throw notFound(type, ref.name);
    const { metadata: _metadata, ...fields } = config as unknown as Json;
    const strange = kind.isCustom ? unknownIn(fields, kind.fields) : undefined;
    if (strange !== undefined)
      throw new Failure(500, '', `failed to create typed patch object: ${strange}: field not declared in schema`);
    const manager: Manager = { name: by, operation: 'Apply', subresource };
    const live = { object: before, managers: this.#managersOf(before) };
    try {
      const { object, managers } = applied(kind, live, { config, manager, isForced });
      if (before !== undefined) return this.#update(collection, before, object, { manager, managers }) as T;
      if (object.metadata.uid !== undefined) throw strangeUid(type, ref.name, before, object.metadata.uid);
      const { namespace } = ref;
      const metadata = { ...object.metadata, ...(namespace !== undefined && { namespace }) };
      return this.create(type, withoutVersion({ ...object, metadata }), { managers });
    } catch (error) {
      throw error instanceof FieldConflict ? fieldConflict(error.fields) : error;
    }
  }

  #managersOf(object: KubeObject | undefined): Managers {
    return (object && this.#managers.get(object)) ?? NO_MANAGERS;
  }

  json<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    operations: readonly Operation[],
    how: Writing = {},
  ): T {
    const collection = this.collection(type);
    const before = collection.get(ref);
    if (before === undefined) throw notFound(type, ref.name);
    try {
      const wanted = jsonPatch(before, operations) as KubeObject;
      return this.#update(collection, before, wanted, updater(how)) as T;
    } catch (error) {
      throw error instanceof PatchError ? patchNotApplied() : error;
    }
  }

  /** Whether the kind has this part. */
  #assertPart({ type, hasStatus, isCustom }: Kind, { name }: ObjectRef, subresource: Subresource): void {
    if (subresource === undefined || hasStatus) return;
    if (isCustom) throw notFound(type, name);
    throw new Failure(404, 'NotFound', 'the server could not find the requested resource', {});
  }

  /** For what runs inside the cluster: any change of an object that is there. */
  change<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, how: (object: T) => T): T | undefined {
    const collection = this.collection(type);
    const before = collection.get(ref) as T | undefined;
    if (before === undefined) return undefined;
    const changed = how(before);
    if (changed === before || sameJson(changed, before)) return before;
    const after = { ...changed, metadata: lean(changed.metadata) };
    return this.#commit(collection, before, after) as T;
  }

  delete(type: ResourceType, ref: ObjectRef, options: Deletion = {}): void {
    const collection = this.collection(type);
    const before = collection.get(ref);
    if (before === undefined) throw notFound(type, ref.name);
    const { uid, resourceVersion } = before.metadata;
    if (options.uid !== undefined && options.uid !== uid) throw strangeUid(type, ref.name, before, options.uid);
    if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
      throw conflict(
        type,
        ref.name,
        `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`,
      );
    }
    if (type.kind === 'Namespace') this.#beginEnd(collection, before);
    else if (type.kind === 'Pod') this.#deletePod(collection, before, options);
    else this.#deleteObject(collection, before, options);
  }

  #uid(): string {
    this.#uids += 1;
    const hex = Math.floor(this.#chance.next() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
    return `${hex}-0000-4000-8000-${String(this.#uids).padStart(12, '0')}`;
  }

  /** What is as it was before has its shape. */
  #shaped({ schema }: Kind, object: KubeObject, before?: KubeObject): KubeObject {
    if (schema === undefined) return object;
    const { metadata, apiVersion, kind, ...rest } = object;
    const known = (before ?? {}) as unknown as Json;
    const changed = Object.fromEntries(Object.entries(rest).filter(([name, value]) => known[name] !== value));
    const same = Object.fromEntries(Object.entries(rest).filter(([name, value]) => known[name] === value));
    return { apiVersion, kind, metadata, ...(structured(changed, schema) as object), ...same };
  }

  /** What admission and defaults add. */
  #completed(type: ResourceType, object: KubeObject): KubeObject {
    if (type.kind === 'Namespace') {
      const labels = { 'kubernetes.io/metadata.name': object.metadata.name, ...object.metadata.labels };
      return {
        ...object,
        metadata: { ...object.metadata, labels },
        spec: { finalizers: ['kubernetes'] },
        status: { phase: 'Active' },
      } as Namespace;
    }
    if (type.kind === 'PersistentVolumeClaim') {
      const finalizers = [...(object.metadata.finalizers ?? []), PVC_PROTECTION];
      return { ...object, metadata: { ...object.metadata, finalizers }, status: { phase: 'Pending' } } as KubeObject;
    }
    if (type.kind === 'GPUInstance' && this.addsFinalizer) {
      const finalizers = [...new Set([...(object.metadata.finalizers ?? []), FINALIZER])];
      return { ...object, metadata: { ...object.metadata, finalizers } };
    }
    if (type.kind !== 'Pod') return object;
    const pod = object as Pod;
    const name = pod.spec?.priorityClassName;
    const found = name === undefined ? undefined : this.find<PriorityClass>(PRIORITY_CLASSES, { name });
    if (name !== undefined && found === undefined) {
      throw forbidden(PODS, pod.metadata.name, `no PriorityClass with name ${name} was found`);
    }
    const spec = {
      terminationGracePeriodSeconds: 30,
      restartPolicy: 'Always',
      ...pod.spec,
      containers: pod.spec?.containers ?? [],
      priority: found?.value ?? 0,
      preemptionPolicy: found?.preemptionPolicy ?? 'PreemptLowerPriority',
    };
    return { ...pod, spec, status: { phase: 'Pending' } } as Pod;
  }

  #admitTo(type: ResourceType, namespace: string, name: string): void {
    const found = this.find(NAMESPACES, { name: namespace });
    if (found === undefined) throw notFound(NAMESPACES, namespace);
    if (found.metadata.deletionTimestamp === undefined) return;
    const message = `namespace ${namespace} is being terminated`;
    const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
    throw forbidden(type, name, why, [{ reason: 'NamespaceTerminating', message, field: 'metadata.namespace' }]);
  }

  /** Kubernetes counts what a pod takes before it stores the pod, and leaves it counted if it then does not. */
  #admitByQuota(type: ResourceType, body: KubeObject): void {
    const { name, namespace = '' } = body.metadata;
    const quotas = this.list<ResourceQuota>(RESOURCE_QUOTAS, namespace);
    if (quotas.length === 0) return;
    const counted = `count/${type.plural}${type.group === '' ? '' : `.${type.group}`}`;
    const taken = type.kind === PODS.kind ? takenByPod(body, this.#time.wall) : {};
    for (const quota of quotas) {
      const hard = quota.status?.hard?.[counted];
      const used = this.collection(type).countIn(namespace);
      const why =
        hard !== undefined && used + 1 > Number(hard)
          ? `exceeded quota: ${quota.metadata.name}, requested: ${counted}=1, used: ${counted}=${used}, limited: ${counted}=${hard}`
          : exceeded(quota, taken);
      if (why !== undefined) throw forbidden(type, name, why);
    }
    if (type.kind !== PODS.kind) return;
    for (const { metadata } of quotas)
      this.change<ResourceQuota>(RESOURCE_QUOTAS, metadata, (quota) => ({
        ...quota,
        status: { ...quota.status, used: withMore(quota, taken) },
      }));
  }

  #update(
    collection: Collection,
    before: KubeObject,
    wanted: KubeObject,
    by: Manager | { manager: Manager; managers: Managers },
  ): KubeObject {
    const { kind } = collection;
    const { manager, managers } = 'manager' in by ? by : { manager: by, managers: undefined };
    const { subresource } = manager;
    const { type } = kind;
    const { name, namespace, uid, resourceVersion } = before.metadata;
    assertNamed(type, { namespace, name }, wanted);
    // The status of a custom resource is written whatever uid comes with it.
    const keepsUid = kind.isCustom && subresource === 'status';
    if (!keepsUid && wanted.metadata.uid !== undefined && wanted.metadata.uid !== uid) {
      const why = `metadata.uid: Invalid value: "${wanted.metadata.uid}": field is immutable`;
      throw invalid(type, name, why, 'metadata.uid');
    }
    const asked = wanted.metadata.resourceVersion;
    const { isCustom, needsVersion = isCustom } = kind;
    if (asked === undefined && needsVersion) {
      const field = 'metadata.resourceVersion';
      throw invalid(type, name, `${field}: Invalid value: 0x0: must be specified for an update`, field);
    }
    if (asked !== undefined && asked !== resourceVersion) throw conflict(type, name, MODIFIED);
    const after = this.#shaped(kind, this.#merged(kind, before, wanted, subresource), before);
    if (kind.isCustom && subresource === undefined) assertRules(type, before, after);
    const known = this.#managersOf(before);
    return this.#commit(
      collection,
      before,
      after,
      managers ?? afterUpdate(known, manager, { before, after, schema: kind.fields }),
    );
  }

  /** What a write to this part of an object may change. */
  #merged(kind: Kind, before: KubeObject, wanted: KubeObject, subresource: Subresource): KubeObject {
    const old = before as KubeObject & { status?: unknown };
    const next = wanted as KubeObject & { status?: unknown };
    const { metadata } = before;
    const { type } = kind;
    // Nobody changes these by a write.
    const kept = {
      uid: metadata.uid,
      creationTimestamp: metadata.creationTimestamp,
      resourceVersion: metadata.resourceVersion,
      generation: metadata.generation,
      deletionTimestamp: metadata.deletionTimestamp,
      deletionGracePeriodSeconds: metadata.deletionGracePeriodSeconds,
    };
    if (subresource === 'status') {
      const { status: _old, ...others } = old;
      // That of a pod may come with metadata, but for its owners.
      const { ownerReferences } = metadata;
      const own = type.kind === 'Pod' ? { metadata: lean({ ...next.metadata, ...kept, ownerReferences }) } : {};
      return { ...others, ...own, ...(next.status !== undefined && { status: next.status }) };
    }
    assertNotDeletedBy(kind.type, before, wanted);
    const { status: _status, ...rest } = next;
    const status = kind.hasStatus ? old.status : next.status;
    const merged = {
      ...rest,
      apiVersion: before.apiVersion,
      kind: before.kind,
      metadata: lean({ ...next.metadata, ...kept }),
      ...(status !== undefined && { status }),
    } as KubeObject;
    if (metadata.deletionTimestamp !== undefined) {
      const added = merged.metadata.finalizers?.find((one) => metadata.finalizers?.includes(one) !== true);
      if (added !== undefined) {
        const why = `metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"${added}"}`;
        throw invalid(kind.type, metadata.name, why, 'metadata.finalizers');
      }
    }
    return merged;
  }

  #commit(
    collection: Collection,
    before: KubeObject,
    wanted: KubeObject,
    managers = this.#managersOf(before),
  ): KubeObject {
    if (sameJson(before, wanted) && isSameOwners(managers, this.#managersOf(before))) return before;
    const isNewSpec = collection.kind.isCustom && !sameJson(specOf(before), specOf(wanted));
    const generation = (before.metadata.generation ?? 0) + 1;
    const after = this.#versioned(isNewSpec ? { ...wanted, metadata: { ...wanted.metadata, generation } } : wanted);
    this.#managers.set(after, managers);
    if (isOver(collection.kind.type, after)) collection.remove(this.#version, before);
    else collection.put(this.#version, before, after);
    return after;
  }

  #versioned(object: KubeObject): KubeObject {
    this.#version += 1;
    return settled({ ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } });
  }

  #beginEnd(collection: Collection, before: KubeObject): void {
    if (before.metadata.deletionTimestamp !== undefined) return;
    const metadata = { ...before.metadata, deletionTimestamp: this.#time.seconds };
    this.#commit(collection, before, { ...before, metadata, status: { phase: 'Terminating' } } as Namespace);
  }

  #deletePod(collection: Collection, before: Pod, { gracePeriodSeconds, ...options }: Deletion): void {
    const { deletionTimestamp, deletionGracePeriodSeconds: known } = before.metadata;
    if (deletionTimestamp !== undefined && known !== undefined) {
      if (gracePeriodSeconds === undefined || gracePeriodSeconds >= known) return;
      this.#endPod(collection, before, Date.parse(deletionTimestamp) - known * 1000, gracePeriodSeconds);
      return;
    }
    const wanted = gracePeriodSeconds ?? before.spec?.terminationGracePeriodSeconds ?? 30;
    const isGraceful = before.spec?.nodeName !== undefined && !isEnded(before);
    const isPlain = options.propagationPolicy === undefined || options.propagationPolicy === 'Background';
    if (isGraceful || isPlain) this.#endPod(collection, before, this.#time.wall, isGraceful ? wanted : 0);
    else this.#deleteObject(collection, before, options);
  }

  #endPod(collection: Collection, before: Pod, from: number, grace: number): void {
    const at = `${new Date(from + grace * 1000).toISOString().slice(0, 19)}Z`;
    const metadata = { ...before.metadata, deletionTimestamp: at, deletionGracePeriodSeconds: grace };
    const after = this.#versioned({ ...before, metadata });
    this.#managers.set(after, this.#managersOf(before));
    collection.put(this.#version, before, after);
    // A pod that goes at once is told of as one that ends, and then as gone.
    if (isOver(PODS, after) && collection.get(after.metadata) === after) this.#drop(collection, after);
  }

  #deleteObject(collection: Collection, before: KubeObject, { propagationPolicy }: Deletion): void {
    const { metadata } = before;
    const policy = propagationPolicy === 'Foreground' ? [FOREGROUND] : propagationPolicy === 'Orphan' ? [ORPHAN] : [];
    const kept = (metadata.finalizers ?? []).filter((one) => one !== FOREGROUND && one !== ORPHAN);
    const finalizers = propagationPolicy === undefined ? (metadata.finalizers ?? []) : [...kept, ...policy];
    if (finalizers.length === 0) {
      this.#drop(collection, before);
      return;
    }
    const isNew = metadata.deletionTimestamp === undefined;
    const generation = collection.kind.isCustom && isNew ? { generation: (metadata.generation ?? 0) + 1 } : {};
    const next = {
      ...metadata,
      ...generation,
      finalizers,
      deletionTimestamp: metadata.deletionTimestamp ?? this.#time.seconds,
      deletionGracePeriodSeconds: 0,
    };
    this.#commit(collection, before, { ...before, metadata: next });
  }

  #drop(collection: Collection, before: KubeObject): void {
    this.#version += 1;
    collection.remove(this.#version, before);
  }

  /** Takes a namespace away in which nothing is left. */
  finishNamespace(name: string): void {
    const collection = this.collection(NAMESPACES);
    const found = collection.get({ name });
    if (found !== undefined) this.#drop(collection, found);
  }

  /** Whether a pod that is not over uses a disk. */
  isDiskUsed({ metadata }: KubeObject): boolean {
    for (const pod of this.collection(PODS).in(metadata.namespace) as Iterable<Pod>) {
      if (isEnded(pod)) continue;
      const names = pod.spec?.volumes?.map(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName) ?? [];
      if (names.includes(metadata.name)) return true;
    }
    return false;
  }

  /** Takes the protection off disks that are being deleted and that no pod uses. */
  releaseDisks(namespace: string): void {
    for (const disk of this.list(PERSISTENT_VOLUME_CLAIMS, namespace)) {
      if (disk.metadata.deletionTimestamp === undefined || this.isDiskUsed(disk)) continue;
      const finalizers = disk.metadata.finalizers?.filter((one) => one !== PVC_PROTECTION) ?? [];
      this.change(PERSISTENT_VOLUME_CLAIMS, disk.metadata, (one) => ({
        ...one,
        metadata: { ...one.metadata, finalizers },
      }));
    }
  }
}

function badPatch(type: ResourceType, { name }: ObjectRef, { found, message }: PatchFormatError): Failure {
  if (found === 'format') return badRequest(message);
  if (found === 'directive') return new Failure(500, '', message);
  return invalid(type, name, `patch: Invalid value: ${message}`, 'patch');
}

function updater({ by: name = '', subresource }: Writing): Manager {
  return { name, operation: 'Update', subresource };
}

function isSameOwners(left: Managers, right: Managers): boolean {
  return left === right || sameJson(byText(left), byText(right));
}

function byText(managers: Managers): Json {
  return Object.fromEntries([...managers].map(([text, fields]) => [text, fieldsV1(fields)]));
}

function withoutVersion(object: KubeObject): KubeObject {
  const { resourceVersion: _version, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function assertNamed(type: ResourceType, { namespace, name }: ObjectRef, { metadata }: KubeObject): void {
  if (metadata.name === name && (!type.namespaced || metadata.namespace === namespace)) return;
  throw badRequest('the name of the object does not match the name on the URL');
}

/** No write of an object begins its end, or changes how long that takes. */
function assertNotDeletedBy(
  type: ResourceType,
  { metadata: before }: KubeObject,
  { metadata: wanted }: KubeObject,
): void {
  if (before.deletionTimestamp === undefined && wanted.deletionTimestamp !== undefined)
    throw immutable(type, before.name, 'metadata.deletionTimestamp');
  const grace = wanted.deletionGracePeriodSeconds;
  if (grace !== undefined && grace !== before.deletionGracePeriodSeconds)
    throw immutable(type, before.name, 'metadata.deletionGracePeriodSeconds');
}

function immutable(type: ResourceType, name: string, field: string): Failure {
  return invalid(type, name, `${field}: Invalid value: field is immutable`, field);
}

function strangeUid(type: ResourceType, name: string, known: KubeObject | undefined, asked: string): Failure {
  const why = `the UID in the precondition (${asked}) does not match the UID in record (${known?.metadata.uid ?? ''}). The object might have been deleted and then recreated`;
  return conflict(type, name, why);
}

function isEmpty(value: unknown): boolean {
  return (
    value === undefined ||
    (Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0)
  );
}

/** Fields of metadata that the API server keeps. */
const METADATA: ReadonlySet<string> = new Set([
  'annotations',
  'creationTimestamp',
  'deletionGracePeriodSeconds',
  'deletionTimestamp',
  'finalizers',
  'generateName',
  'generation',
  'labels',
  'name',
  'namespace',
  'ownerReferences',
  'resourceVersion',
  'uid',
]);

/** What is left of metadata: its maps and lists that are empty go. */
function lean<T extends object>(metadata: T): T {
  const left = Object.entries(metadata).filter(([name, value]) => METADATA.has(name) && !isEmpty(value));
  return Object.fromEntries(left) as T;
}

/** Whether an object goes with this write: it is being deleted, and nothing keeps it any more. */
function isOver(type: ResourceType, { metadata }: KubeObject): boolean {
  if (metadata.deletionTimestamp === undefined || (metadata.finalizers ?? []).length > 0) return false;
  if (type.kind === 'Namespace') return false;
  return (metadata.deletionGracePeriodSeconds ?? 0) === 0;
}

/** The rules of the definitions that the model knows: what is set once, and what never changes. */
function assertRules(type: ResourceType, before: KubeObject, after: KubeObject): void {
  const [old, next] = [before, after].map((one) => (one as unknown as Json)['spec']);
  if (!isObject(old) || !isObject(next)) return;
  if (type.kind === 'UsageRecord' && !sameJson(old, next)) {
    throw invalid(type, keyOf(before), 'spec: Invalid value: a usage record cannot change: leave it as it is');
  }
  if (type.kind !== 'GPUInstance') return;
  for (const field of ['offerId', 'gpu', 'diskGb']) {
    if (old[field] === undefined || sameJson(old[field], next[field])) continue;
    const why = `spec.${field}: Invalid value: ${field} cannot change once it is set: delete this instance and create another`;
    throw invalid(type, before.metadata.name, why, `spec.${field}`);
  }
  if (old['type'] !== next['type']) {
    throw invalid(
      type,
      before.metadata.name,
      'spec.type: Invalid value: type cannot change: delete this instance and create another',
      'spec.type',
    );
  }
}
