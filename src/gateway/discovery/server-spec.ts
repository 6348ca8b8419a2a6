import type { InferencePool } from '../../kube/inference-pools.ts';
import type { Namespace, Service } from '../../kube/types.ts';
import { isInsideName } from '../../lib/inside-name.ts';
import { trimEnd } from '../../lib/trim-end.ts';
import { serverAnnotations } from '../../resources/model-servers/annotations.ts';
import { FALLBACK_REASONS, MODEL_NAME, PUBLIC_HOST } from '../../resources/model-servers/names.ts';
import { PRICED_MODELS_LABEL, readPrices } from '../../resources/model-servers/prices.ts';
import { readScale, SCALE_TARGET, type ScaleSpec } from '../../resources/model-servers/scale.ts';
import { DIALECTS, ENGINES, type Dialect, type Engine } from '../dialects/index.ts';
import type { FallbackSpec, ModelAlias, ServerSpec } from './types.ts';

export const MODEL_SERVER_LABEL = 'berth.dev/model-server';
/** On a Namespace: its Services may share their models. Namespaces belong to the operator of the cluster. */
export const SHARED_MODELS_LABEL = 'berth.dev/shared-models';

const PREFIX = /^(\/[A-Za-z0-9._~-]+){1,8}$/;
const MAX_ALIASES = 64;
const MAX_HOSTS = 64;
const FALLBACKS = 'berth.dev/model-fallbacks';
const FALLBACK_ON = 'berth.dev/model-fallback-on';
/** Each is another time that the client waits for nothing. */
const MAX_FALLBACKS = 4;

export interface NamespaceSource {
  /** Berth's own namespace. */
  own: string;
  find: (name: string) => Namespace | undefined;
  /** Whether the operator lets Berth scale workloads of the namespace. */
  mayScale: (name: string) => boolean;
}

/**
 * Reads a Service labelled `berth.dev/model-server=true`. Annotations, all optional:
 * `berth.dev/model-port` (port name or number), `-credential` (a Secret with the engine's key, in Berth's namespace), `-path-prefix` (in front of `/v1`), `-aliases` (comma-separated,
 * `alias` or `alias=model`), `-engine` and `-dialects` (instead of what the probe finds), `-media-hosts` (from where the server may fetch media), `-fallbacks` and `-fallback-on` (other models for calls that it cannot take, and when), and `berth.dev/shared=true`
 * (every tenant may call it). Services of Berth's own namespace are always shared. Those of other namespaces are shared
 * only when the namespace has the label `berth.dev/shared-models=true`: the Service belongs to the tenant, and the
 * namespace to the operator. `readScale` reads those of servers that scale to zero, in the namespaces that the operator
 * named for it, and `readPrices` those of priced models, which count in Berth's own namespace and in those with the label
 * `berth.dev/priced-models=true`.
 *
 * @returns undefined when the Service has no such label or is being deleted
 */
export function readServer(
  service: Service | InferencePool,
  { own, find, mayScale }: NamespaceSource,
): ServerSpec | undefined {
  const { metadata } = service;
  if (metadata.labels?.[MODEL_SERVER_LABEL] !== 'true' || metadata.deletionTimestamp !== undefined) return undefined;
  const problems: string[] = [];
  const annotations = serverAnnotations(service, problems);
  const namespace = metadata.namespace ?? 'default';
  const port = annotations['berth.dev/model-port']?.trim();
  const prefix = readPrefix(annotations['berth.dev/model-path-prefix'], problems);
  const engine = readEngine(annotations['berth.dev/model-engine'], problems);
  const dialects = readDialects(annotations['berth.dev/model-dialects'], problems);
  const scale = readAllowedScale(annotations, mayScale(namespace), problems);
  const credential = annotations['berth.dev/model-credential']?.trim();
  const mediaHosts = readHosts(annotations['berth.dev/model-media-hosts'], problems);
  const mayPrice = namespace === own || find(namespace)?.metadata.labels?.[PRICED_MODELS_LABEL] === 'true';
  const prices = readPrices(annotations, mayPrice, problems);
  const fallback = readFallback(annotations, problems);
  const wantsShared = annotations['berth.dev/shared'] === 'true';
  const sharedRank = namespace === own ? -1 : wantsShared ? rankOf(find(namespace)) : undefined;
  if (wantsShared && sharedRank === undefined)
    problems.push(`berth.dev/shared needs the label ${SHARED_MODELS_LABEL}=true on the namespace`);
  return {
    namespace,
    name: metadata.name,
    uid: metadata.uid ?? `${namespace}/${metadata.name}`,
    createdAt: Math.max(0, Date.parse(metadata.creationTimestamp ?? '') || 0),
    aliases: readAliases(annotations['berth.dev/model-aliases'], problems),
    problems,
    ...(sharedRank !== undefined && { sharedRank }),
    ...(port && { port }),
    ...(prefix !== undefined && { prefix }),
    ...(engine && { engine }),
    ...(dialects && { dialects }),
    ...(scale && { scale }),
    ...(credential && { credential }),
    ...(mediaHosts.length > 0 && { mediaHosts }),
    ...(prices && { prices }),
    ...(fallback && { fallback }),
  };
}

/** What counts on Services only: a pool names its ports, and no controller scales what is behind it. */
const OF_SERVICES = /^berth\.dev\/(?:model-port$|model-names$|scale-)/;

/** The same of an InferencePool. */
export function readPool(pool: InferencePool, source: NamespaceSource): ServerSpec | undefined {
  const annotations = Object.entries(pool.metadata.annotations ?? {});
  const left = annotations.filter(([name]) => OF_SERVICES.test(name));
  const counted = annotations.filter(([name]) => !OF_SERVICES.test(name));
  const metadata = { ...pool.metadata, annotations: Object.fromEntries(counted) };
  const server = readServer({ ...pool, metadata }, source);
  if (server === undefined) return undefined;
  const problems = [...server.problems, ...left.map(([name]) => `${name} counts on Services only`)];
  if ((pool.spec?.appProtocol ?? 'http') !== 'http')
    problems.push('it gets no calls, because spec.appProtocol is not http');
  return { ...server, problems };
}

function readAllowedScale(
  annotations: Readonly<Record<string, string>>,
  isAllowed: boolean,
  problems: string[],
): ScaleSpec | undefined {
  if (isAllowed || annotations[SCALE_TARGET] === undefined) return readScale(annotations, problems);
  problems.push(`${SCALE_TARGET} needs the namespace in models.scaleFromZero.namespaces of the chart`);
  return undefined;
}

/** The age of a namespace that may share: its tenants can change neither. Undefined for any other namespace. */
function rankOf(namespace: Namespace | undefined): number | undefined {
  if (namespace?.metadata.labels?.[SHARED_MODELS_LABEL] !== 'true') return undefined;
  return Math.max(0, Date.parse(namespace.metadata.creationTimestamp ?? '') || 0);
}

/** A tenant that labels a Service chooses the path: it may hold no query, no `..` and nothing to escape. */
function readPrefix(raw: string | undefined, problems: string[]): string | undefined {
  if (raw === undefined) return undefined;
  const prefix = trimEnd(raw.trim(), '/');
  if (prefix === '') return '';
  if (PREFIX.test(prefix) && !prefix.split('/').includes('..')) return prefix;
  problems.push('berth.dev/model-path-prefix is not a plain absolute path');
  return undefined;
}

function readEngine(raw: string | undefined, problems: string[]): Engine | undefined {
  if (raw === undefined) return undefined;
  const engine = ENGINES.find((engine) => engine === raw.trim().toLowerCase());
  if (engine === undefined) problems.push(`berth.dev/model-engine is none of ${ENGINES.join(', ')}`);
  return engine;
}

function readDialects(raw: string | undefined, problems: string[]): readonly Dialect[] | undefined {
  if (raw === undefined) return undefined;
  const names = raw.split(',').map((name) => name.trim().toLowerCase());
  const dialects = DIALECTS.filter((dialect) => names.includes(dialect));
  if (dialects.length === names.length) return dialects;
  problems.push(`berth.dev/model-dialects is not a list of ${DIALECTS.join(', ')}`);
  return undefined;
}

function readAliases(raw: string | undefined, problems: string[]): ModelAlias[] {
  if (raw === undefined) return [];
  const aliases: ModelAlias[] = [];
  for (const entry of raw.split(',').slice(0, MAX_ALIASES)) {
    const [alias = '', ...target] = entry.split('=').map((part) => part.trim());
    const model = target.length === 0 ? undefined : target.join('=');
    if (alias === '' && model === undefined) continue;
    if (MODEL_NAME.test(alias) && (model === undefined || MODEL_NAME.test(model))) {
      aliases.push(model === undefined ? { alias } : { alias, model });
    } else {
      problems.push('berth.dev/model-aliases has an entry that is neither `alias` nor `alias=model`');
    }
  }
  return aliases;
}

function readFallback(annotations: Readonly<Record<string, string>>, problems: string[]): FallbackSpec | undefined {
  const names = listOf(annotations[FALLBACKS]);
  const reasons = listOf(annotations[FALLBACK_ON]);
  const models = [...new Set(names.filter((name) => MODEL_NAME.test(name)))].slice(0, MAX_FALLBACKS);
  if (models.length < names.length)
    problems.push(`${FALLBACKS} is not a list of at most ${MAX_FALLBACKS} names of models`);
  const on = FALLBACK_REASONS.filter((reason) => reasons.includes(reason));
  if (on.length < reasons.length) {
    problems.push(`${FALLBACK_ON} is not a list of ${FALLBACK_REASONS.join(', ')}`);
    return undefined;
  }
  return models.length === 0 ? undefined : { models, on: on.length === 0 ? FALLBACK_REASONS : on };
}

function listOf(raw: string | undefined): string[] {
  return (raw ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

/** Only names of the public internet: a model server is no way into the cluster, whoever writes the Service. */
function readHosts(raw: string | undefined, problems: string[]): string[] {
  if (raw === undefined) return [];
  const names = raw.split(',', MAX_HOSTS).map((name) => name.trim().toLowerCase());
  const hosts = names.filter((name) => PUBLIC_HOST.test(name) && !isInsideName(name));
  if (hosts.length < names.length)
    problems.push(
      'berth.dev/model-media-hosts has an entry that is no public name of a host, such as images.example.com or *.example.com',
    );
  return hosts;
}
