import { isObject, type Json } from '../../../src/lib/json.ts';
import { keyOf, type KubeObject, type ResourceType } from '../../../src/kube/types.ts';
import { type ApiServer, type Deletion, type Subresource } from './server.ts';
import { badRequest, Failure, withoutManager } from './failure.ts';
import type { Operation } from './patch.ts';
import { Line } from './lines.ts';
import { selects } from './selectors.ts';

/** One HTTP request on the API server. */
export interface Request {
  method: string;
  /** With its query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string | null;
}

export interface Answer {
  status: number;
  /** An object or a list, or a text. */
  body: Line | string;
}

/** What a path names. */
export interface Target {
  type: Pick<ResourceType, 'group' | 'plural'>;
  namespace: string | undefined;
  name: string | undefined;
  subresource: string | undefined;
}

export function targetOf(pathname: string): Target {
  const raw = pathname.split('/').slice(1);
  const parts = pathname.includes('%') ? raw.map((one) => decodeURIComponent(one)) : raw;
  const group = parts[0] === 'api' ? '' : (parts[1] ?? '');
  const rest = parts.slice(group === '' ? 2 : 3);
  const isInside = rest[0] === 'namespaces' && rest.length > 2;
  const [plural = '', name, subresource] = isInside ? rest.slice(2) : rest;
  return { type: { group, plural }, namespace: isInside ? rest[1] : undefined, name, subresource };
}

function parse(body: string | null): unknown {
  try {
    return JSON.parse(body ?? 'null');
  } catch {
    throw badRequest('the object provided is unrecognized');
  }
}

function fieldOf(object: unknown, path: string): unknown {
  let value = object;
  for (const name of path.split('.')) value = isObject(value) ? value[name] : undefined;
  return value;
}

function hasFields(object: KubeObject, selector: string): boolean {
  return selector.split(',').every((one) => {
    const [path = '', value] = one.split('=');
    return (fieldOf(object, path) ?? '') === value;
  });
}

const SLIM = new WeakMap<KubeObject, KubeObject>();

/** Its metadata. No object in a store is ever changed. */
function slim(object: KubeObject): KubeObject {
  let known = SLIM.get(object);
  if (known === undefined) SLIM.set(object, (known = Object.freeze({ metadata: object.metadata })));
  return known;
}

function list(api: ApiServer, { type, namespace }: Target, query: URLSearchParams, isSlim: boolean): Line {
  const collection = api.collection(type);
  const labels = query.get('labelSelector');
  const fields = query.get('fieldSelector');
  const limit = Number(query.get('limit') ?? 0);
  const after = query.get('continue') ?? '';
  let items = collection.inOrder(namespace, after);
  if (labels !== null) items = items.filter(selects(labels));
  if (fields !== null) items = items.filter((one) => hasFields(one, fields));
  const page = limit > 0 ? items.slice(0, limit) : items;
  const last = page.at(-1);
  const next = last !== undefined && page.length < items.length ? { continue: keyOf(last.metadata) } : {};
  const metadata = { resourceVersion: String(api.version), ...next };
  return new Line({ kind: 'List', metadata, items: isSlim ? page.map(slim) : page });
}

/** Carries a request out. Never throws. */
export function carryOut(api: ApiServer, request: Request): Answer {
  try {
    return carry(api, request);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { status: error.code, body: JSON.stringify(error.body) };
  }
}

function carry(api: ApiServer, { method, path, headers, body }: Request): Answer {
  const [pathname = '', search = ''] = path.split('?');
  const target = targetOf(pathname);
  const { type: found, isCustom } = api.collection(target.type).kind;
  const ref = { namespace: target.namespace, name: target.name ?? '' };
  const subresource = target.subresource as Subresource;
  const query = new URLSearchParams(search);
  const by = query.get('fieldManager') ?? headers['user-agent']?.split('/')[0] ?? '';
  const how = { subresource, by };
  const whole = (object: KubeObject, status = 200): Answer => ({ status, body: new Line(object) });
  if (method === 'GET') {
    if (target.name !== undefined) return whole(api.get(found, ref));
    const isSlim = headers['accept']?.includes('PartialObjectMetadataList') === true;
    return { status: 200, body: list(api, target, query, isSlim) };
  }
  const given = parse(body);
  if (method === 'POST') {
    const object = { ...(given as KubeObject) };
    const metadata = { ...object.metadata, ...(target.namespace !== undefined && { namespace: target.namespace }) };
    const dryRun = query.get('dryRun') === 'All';
    return whole(api.create(found, { ...object, metadata }, { dryRun, by }), 201);
  }
  if (method === 'PUT') {
    const isNew = api.find(found, ref) === undefined;
    return whole(api.replace(found, ref, given as KubeObject, how), isNew ? 201 : 200);
  }
  if (method === 'PATCH') {
    const type = headers['content-type'];
    if (type === 'application/json-patch+json') return whole(api.json(found, ref, given as Operation[], how));
    if (type === 'application/merge-patch+json') return whole(api.merge(found, ref, given, how));
    if (type === 'application/strategic-merge-patch+json' && !isCustom)
      return whole(api.strategic(found, ref, given as Json, how));
    if (type !== 'application/apply-patch+yaml')
      throw new Failure(415, 'UnsupportedMediaType', `the body of the request was in an unknown format: ${type}`);
    if (!query.has('fieldManager')) throw withoutManager();
    const isNew = api.find(found, ref) === undefined;
    const isForced = query.get('force') === 'true';
    return whole(api.apply(found, ref, given as KubeObject, { ...how, isForced }), isNew ? 201 : 200);
  }
  if (method === 'DELETE') {
    const { preconditions, gracePeriodSeconds, propagationPolicy } = (given ?? {}) as Deletion & {
      preconditions?: Deletion;
    };
    api.delete(found, ref, { ...preconditions, gracePeriodSeconds, propagationPolicy });
    return { status: 200, body: '{"kind":"Status","status":"Success"}' };
  }
  throw new Failure(405, 'MethodNotAllowed', `the server does not allow this method on the requested resource`);
}
