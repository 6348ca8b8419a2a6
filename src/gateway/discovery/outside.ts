import type { Dispatcher } from 'undici';
import { outsideAgent } from '../../lib/outside-http.ts';
import { FALLBACK_REASONS } from '../../resources/model-servers/names.ts';
import { type ModelServer, type Outside, outsideOf } from '../../resources/model-servers/model-server.ts';
import { PLAIN_NAMES, PLAIN_ROUTES } from '../plain-routes.ts';
import type { OutsideServer, Probe, ServerSpec } from './types.ts';

type OutsideModel = ModelServer['spec']['models'][number];

/** A server outside the cluster. Nothing is found out about it: the operator says what it is. */
export interface OutsideSpec {
  server: ServerSpec;
  probe: Probe;
  /** Why it gets no calls, if it is a text. */
  where: Outside | string;
  ca: string | undefined;
}

export function readOutside({ metadata, spec }: ModelServer): OutsideSpec {
  const { namespace = '', name, uid = `${namespace}/${name}` } = metadata;
  const where = outsideOf(spec);
  const { credentialSecret: credential, mediaHosts = [], endpoints = [], dialects, models, tenants } = spec;
  return {
    where,
    ca: spec.caBundle,
    server: {
      namespace,
      name,
      uid,
      createdAt: Math.max(0, Date.parse(metadata.creationTimestamp ?? '') || 0),
      // As what is in Berth's own namespace.
      sharedRank: -1,
      aliases: [],
      problems: [],
      outside: {
        tenants: tenants as OutsideServer['tenants'],
        models: new Map(models.map((one) => [one.name, saidOf(one)])),
      },
      ...(credential !== undefined && { credential }),
      ...(mediaHosts.length > 0 && { mediaHosts }),
    },
    probe: {
      engine: 'unknown',
      prefix: '',
      root: typeof where === 'string' ? '' : where.path,
      models: models.map(({ name: id, upstreamName, contextLength }) => ({
        id,
        ...(upstreamName !== undefined && { upstream: upstreamName }),
        ...(contextLength !== undefined && { contextLength }),
      })),
      dialects,
      plainPaths: Object.fromEntries(
        PLAIN_NAMES.filter((route) => endpoints.some((path) => path === PLAIN_ROUTES[route].path)).map((route) => [
          route,
          PLAIN_ROUTES[route].path,
        ]),
      ),
      countTokens: false,
      tokenize: false,
    },
  };
}

function saidOf({ price, fallbacks }: OutsideModel): NonNullable<ReturnType<OutsideServer['models']['get']>> {
  return {
    ...(price && { prices: { ...price, cachedInput: price.cachedInput ?? price.input } }),
    ...(fallbacks && { fallback: { models: fallbacks.models, on: fallbacks.reasons ?? FALLBACK_REASONS } }),
  };
}

/** Connections to servers outside, by the authorities that they believe. */
export class OutsideAgents {
  readonly #timeouts: { keepAliveMs: number; connectMs: number };
  readonly #agents = new Map<string | undefined, Dispatcher>();

  constructor(timeouts: { keepAliveMs: number; connectMs: number }) {
    this.#timeouts = timeouts;
  }

  /** Undefined where `ca` has no certificate. */
  of(ca: string | undefined): Dispatcher | undefined {
    let agent = this.#agents.get(ca);
    try {
      agent ??= outsideAgent({ ca, ...this.#timeouts });
    } catch {
      return undefined;
    }
    this.#agents.set(ca, agent);
    return agent;
  }

  /** Closes the connections of the others once their calls have ended. */
  keep(used: ReadonlySet<string | undefined>): void {
    for (const [ca, agent] of this.#agents) {
      if (used.has(ca)) continue;
      this.#agents.delete(ca);
      void agent.close();
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.close()));
  }
}
