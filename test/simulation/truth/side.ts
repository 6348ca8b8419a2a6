import { pathOf } from '../../../src/kube/client/client.ts';
import { isObject, type Json } from '../../../src/lib/json.ts';
import { mergePatch } from '../api/patch.ts';
import { comparable, nameOf, type Outcome, ownersIn, refusal, withoutOwners } from './outcome.ts';
import { type KindName, type Step, TYPES } from './steps.ts';

/** One line of a watch. */
export interface WatchLine {
  type: string;
  object: Json;
}

/** An API server that steps are put to: the model or a real one. */
export interface Side {
  readonly namespace: string;
  send(call: Call): Promise<{ status: number; body: Json }>;
  /** Begins to read a watch. The list fills while it is read. */
  watch(path: string): Promise<{ status: number; lines: readonly WatchLine[] }>;
  /** Waits until what runs in the cluster has done its work; `expected` is what the other side came to. */
  rest(expected: Snapshot | undefined): Promise<Snapshot>;
  /** Waits until all watches have told what was to be told: as much as the other side, if that is known. */
  heard(watches: readonly Watched[], expected: readonly number[] | undefined): Promise<void>;
}

export interface Call {
  method: string;
  path: string;
  contentType?: string;
  body?: unknown;
}

export type Snapshot = Readonly<Record<string, readonly Json[]>>;
export interface Watched {
  kind: KindName;
  lines: readonly WatchLine[];
}

const METHODS = {
  create: 'POST',
  replace: 'PUT',
  merge: 'PATCH',
  json: 'PATCH',
  strategic: 'PATCH',
  apply: 'PATCH',
  delete: 'DELETE',
} as const;
const CONTENT = {
  create: 'application/json',
  replace: 'application/json',
  delete: 'application/json',
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

export function snapshotOf(lists: readonly (readonly [KindName, readonly Json[]])[]): Snapshot {
  return Object.fromEntries(
    lists.map(([kind, items]) => [
      kind,
      items.map((one) => comparable(kind, one)).toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)),
    ]),
  );
}

/** Puts steps to one side. It remembers what it has seen, because steps speak of it. */
export class Performer {
  readonly #side: Side;
  readonly #first = new Map<string, Json>();
  readonly #last = new Map<string, Json>();
  readonly #watches: Watched[] = [];

  constructor(side: Side) {
    this.#side = side;
  }

  get watches(): readonly Watched[] {
    return this.#watches;
  }

  async perform(step: Step, expected: Outcome | undefined): Promise<Outcome> {
    const outcome = await this.#perform(step);
    if (step.rests !== true) return outcome;
    const snapshot = (expected?.seen as { rest?: Snapshot } | undefined)?.rest;
    return { ...outcome, seen: { answer: outcome.seen, rest: await this.#side.rest(snapshot) } };
  }

  async #perform(step: Step): Promise<Outcome> {
    const type = TYPES[step.kind];
    const { namespace } = this.#side;
    if (step.do === 'end') {
      const { status } = await this.#side.send({
        method: 'DELETE',
        path: `/api/v1/namespaces/${namespace}`,
        body: {},
        contentType: CONTENT.delete,
      });
      return { status };
    }
    if (step.do === 'watch') return this.#watch(step.kind, step.from);
    if (step.do === 'list') return this.#list(step);
    const isNew = step.do === 'create';
    const path = pathOf(
      type,
      isNew ? { namespace } : { namespace, name: step.name },
      'part' in step ? step.part : undefined,
    );
    const isDryRun = isNew && step.dryRun === true;
    const query = new URLSearchParams({
      ...(isDryRun && { dryRun: 'All' }),
      ...('by' in step && { fieldManager: step.by }),
      ...(step.do === 'apply' && step.isForced === true && { force: 'true' }),
    }).toString();
    const key = `${step.kind}/${step.name}`;
    if (step.do === 'get') return this.#outcome(step.kind, await this.#side.send({ method: 'GET', path }));
    const answer = await this.#side.send({
      method: METHODS[step.do],
      path: query === '' ? path : `${path}?${query}`,
      contentType: CONTENT[step.do],
      body: this.#resolved(this.#bodyOf(step, key)),
    });
    if (step.do === 'delete') return answer.status < 300 ? { status: 200 } : refusal(answer.status, answer.body);
    return this.#outcome(step.kind, answer, isDryRun);
  }

  #bodyOf(step: Exclude<Step, { do: 'get' | 'list' | 'watch' | 'end' }>, key: string): unknown {
    const { group, version, kind } = TYPES[step.kind];
    const typed = { apiVersion: group === '' ? version : `${group}/${version}`, kind };
    if (step.do === 'create' || step.do === 'apply') {
      return { ...typed, ...step.body, metadata: { ...(step.body['metadata'] as Json), name: step.name } };
    }
    if (step.do === 'replace') {
      const { namespace } = this.#side;
      const known = this.#last.get(key) ?? { metadata: { name: step.name, namespace } };
      return { ...(mergePatch(known, step.change) as Json), ...typed };
    }
    return step.body;
  }

  #outcome(kind: KindName, { status, body }: { status: number; body: Json }, isDryRun = false): Outcome {
    if (status >= 300) return refusal(status, body);
    if (!isDryRun) this.#remember(kind, body);
    return { status, seen: comparable(kind, body), owners: isDryRun ? undefined : ownersIn(kind, body) };
  }

  #remember(kind: KindName, object: Json): void {
    const key = `${kind}/${nameOf(object)}`;
    const { uid } = object['metadata'] as Json;
    const first = this.#first.get(key)?.['metadata'] as Json | undefined;
    if (first?.['uid'] !== uid) this.#first.set(key, object);
    // Who sends managedFields that were read takes back what was owned then.
    this.#last.set(key, withoutOwners(object));
  }

  async #list({ kind, labelSelector, limit }: Extract<Step, { do: 'list' }>): Promise<Outcome> {
    const query = new URLSearchParams({
      ...(labelSelector !== undefined && { labelSelector }),
      ...(limit !== undefined && { limit: String(limit) }),
    });
    const path = `${pathOf(TYPES[kind], { namespace: this.#side.namespace })}?${query.toString()}`;
    const { status, body } = await this.#side.send({ method: 'GET', path });
    if (status >= 300) return refusal(status, body);
    const items = (body['items'] ?? []) as Json[];
    for (const item of items) this.#remember(kind, item);
    const isCut = ((body['metadata'] as Json)['continue'] ?? '') !== '';
    return { status, seen: { items: items.map((one) => comparable(kind, one)), isCut } };
  }

  async #watch(kind: KindName, from: string): Promise<Outcome> {
    const path = pathOf(TYPES[kind], { namespace: this.#side.namespace });
    const query = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: '3600',
      ...(await this.#start(path, from)),
    };
    const { status, lines } = await this.#side.watch(`${path}?${new URLSearchParams(query).toString()}`);
    this.#watches.push({ kind, lines });
    return { status };
  }

  async #start(path: string, from: string): Promise<Record<string, string>> {
    if (from === 'initial') return { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' };
    const known = this.#metadataOf(from)?.['resourceVersion'];
    if (known !== undefined) return { resourceVersion: known as string };
    const { body } = await this.#side.send({ method: 'GET', path });
    return { resourceVersion: (body['metadata'] as Json)['resourceVersion'] as string };
  }

  #metadataOf(text: string): Json | undefined {
    const [what = '', of = ''] = text.split(' ');
    const object = (what === '$first' ? this.#first : this.#last).get(of);
    return object?.['metadata'] as Json | undefined;
  }

  #resolved(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((one) => this.#resolved(one));
    if (isObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.#resolved(one)]));
    }
    if (typeof value !== 'string' || !value.startsWith('$')) return value;
    const metadata = this.#metadataOf(value);
    if (value.startsWith('$uid')) return metadata?.['uid'] ?? 'none';
    return metadata?.['resourceVersion'] ?? '1';
  }
}

/** The body of a request as a connection takes it. */
export function requestOf({ method, path, contentType, body }: Call) {
  return {
    method: method as 'GET',
    path,
    headers: { accept: 'application/json', ...(contentType !== undefined && { 'content-type': contentType }) },
    body: body === undefined ? null : JSON.stringify(body),
  };
}
