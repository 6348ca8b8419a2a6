import type { Service } from '../../kube/types.ts';
import { DIALECTS, ENGINES, type Dialect, type Engine } from '../dialects/index.ts';
import type { ModelAlias, ServerSpec } from './types.ts';

export const MODEL_SERVER_LABEL = 'berth.dev/model-server';

const PREFIX = /^(\/[A-Za-z0-9._~-]+){1,8}$/;
const MODEL_NAME = /^[^\s,=\p{Cc}][^,=\p{Cc}]{0,255}$/u;
const MAX_ALIASES = 64;

/**
 * Reads a Service labelled `berth.dev/model-server=true`. Annotations, all optional:
 * `berth.dev/model-port` (port name or number), `-path-prefix` (in front of `/v1`), `-aliases` (comma-separated,
 * `alias` or `alias=model`), `-engine` and `-dialects` (instead of what the probe finds), and `berth.dev/shared=true`
 * (every tenant may call it). Services of `sharedNamespace`, which is Berth's own, are always shared.
 *
 * @returns undefined when the Service has no such label or is being deleted
 */
export function readServer(service: Service, sharedNamespace: string): ServerSpec | undefined {
  const { metadata } = service;
  if (metadata.labels?.[MODEL_SERVER_LABEL] !== 'true' || metadata.deletionTimestamp !== undefined) return undefined;
  const annotations = metadata.annotations ?? {};
  const problems: string[] = [];
  const namespace = metadata.namespace ?? 'default';
  const port = annotations['berth.dev/model-port']?.trim();
  const prefix = readPrefix(annotations['berth.dev/model-path-prefix'], problems);
  const engine = readEngine(annotations['berth.dev/model-engine'], problems);
  const dialects = readDialects(annotations['berth.dev/model-dialects'], problems);
  return {
    namespace,
    name: metadata.name,
    uid: metadata.uid ?? `${namespace}/${metadata.name}`,
    shared: namespace === sharedNamespace || annotations['berth.dev/shared'] === 'true',
    aliases: readAliases(annotations['berth.dev/model-aliases'], problems),
    created: Math.floor(Date.parse(metadata.creationTimestamp ?? '') / 1000) || 0,
    problems,
    ...(port && { port }),
    ...(prefix !== undefined && { prefix }),
    ...(engine && { engine }),
    ...(dialects && { dialects }),
  };
}

/** A tenant that labels a Service chooses the path: it may hold no query, no `..` and nothing to escape. */
function readPrefix(raw: string | undefined, problems: string[]): string | undefined {
  if (raw === undefined) return undefined;
  const prefix = raw.trim().replace(/\/+$/, '');
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
