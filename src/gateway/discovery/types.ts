import type { Dispatcher } from 'undici';
import type { LabelSelector } from '../../kube/selector.ts';
import type { TokenPrices } from '../../resources/model-servers/prices.ts';
import type { ScaleSpec } from '../../resources/model-servers/scale.ts';
import type { Dialect, Engine } from '../dialects/index.ts';
import type { PlainPaths } from '../plain-routes.ts';
import type { EngineCredential } from '../../resources/model-servers/engine-credential.ts';
import type { FallbackReason } from '../../resources/model-servers/names.ts';

/** One model as its server lists it. */
export interface ServedModel {
  id: string;
  /** The name that the server has for it. Absent: the same. */
  upstream?: string;
  /** Tokens. Absent when the engine does not report it. */
  contextLength?: number;
  /** Unix seconds. */
  created?: number;
}

/** What one probe of one pod found out. */
export interface Probe {
  engine: Engine;
  version?: string;
  /** Path in front of `/v1`, found by the probe or given by annotation. */
  prefix: string;
  /** What stands in the place of prefix and `/v1`, where that is known otherwise. */
  root?: string;
  models: readonly ServedModel[];
  dialects: readonly Dialect[];
  /** What it has besides the dialects. */
  plainPaths: PlainPaths;
  /** The engine answers POST /v1/messages/count_tokens. */
  countTokens: boolean;
  /** The engine answers POST /tokenize. */
  tokenize: boolean;
}

export interface ModelAlias {
  alias: string;
  /** Absent: the first model the server lists. */
  model?: string;
}

/** Where calls go that a model cannot take. */
export interface FallbackSpec {
  /** Names of models, as its callers know them, in order. */
  models: readonly string[];
  on: readonly FallbackReason[];
}

/** What a ModelServer says of its models and callers. */
export interface OutsideServer {
  /** Whose tenants may call it; undefined: all. */
  tenants: LabelSelector | undefined;
  models: ReadonlyMap<string, { prices?: TokenPrices; fallback?: FallbackSpec }>;
}

/** What a labelled Service or a ModelServer says about its server. */
export interface ServerSpec {
  namespace: string;
  name: string;
  uid: string;
  /** When the Service was made: milliseconds since the epoch. Absent or equal: its name decides. */
  createdAt?: number;
  /**
   * Its right to the names of its models, for every tenant: the smallest goes first. Absent: for its own tenant alone.
   */
  sharedRank?: number;
  /** Port name or number as the annotation gives it. */
  port?: string;
  prefix?: string;
  aliases: readonly ModelAlias[];
  engine?: Engine;
  dialects?: readonly Dialect[];
  /** Its workload may have no replica. */
  scale?: ScaleSpec;
  /** The Secret of Berth's own namespace with the key of the engine. */
  credential?: string;
  /** Hosts from which it may fetch images and other media; `*.` in front of a name stands for all below it. */
  mediaHosts?: readonly string[];
  /** What its models cost tenants of other namespaces. */
  prices?: TokenPrices;
  fallback?: FallbackSpec;
  /** It is outside the cluster. */
  outside?: OutsideServer;
  /** What is wrong with annotations, for the log. */
  problems: readonly string[];
}

/** The workload behind a server that scales to zero, whichever Service names it; undefined for other servers. */
export function workloadOf({ namespace, scale }: Pick<ServerSpec, 'namespace' | 'scale'>): string | undefined {
  if (scale === undefined) return undefined;
  const { group, plural, name } = scale.target;
  return `${namespace}/${plural}.${group}/${name}`;
}

/** The path of a route that is named with its `/v1`. */
export function pathAt({ prefix, root }: Pick<Probe, 'prefix' | 'root'>, route: string): string {
  return root === undefined ? `${prefix}${route}` : `${root}${route.replace(/^\/v1(?=\/)/, '')}`;
}

/** One address of one server, from its EndpointSlices or its ModelServer. */
export interface Target {
  /** UIDs of the Service and the pod (or the address when there is no pod) and port: the identity of a probe. */
  key: string;
  /** The same without the Service: namespace, pod and port. */
  place: string;
  /** `http://ip:port`. Secret: clients see the endpoint's name instead. */
  origin: string;
  /** Changes when a container of the pod restarts, which makes a new probe due. */
  restarts: string;
  server: ServerSpec;
  /** What the engine asks for. */
  credential?: EngineCredential;
  /** Connections to it, where it is outside the cluster. */
  dispatcher?: Dispatcher;
  /** Ready and serving, and neither the endpoint nor its pod is terminating. */
  available: boolean;
}

/** The namespaces whose model servers are followed beside those that the operator shares: tenants'. */
export interface FollowedNamespaces {
  has(namespace: string): boolean;
  /** Calls back when there are others. Returns the function that ends this. */
  onChange(listener: () => void): () => void;
}

/** What replicas remember together of servers that scale to zero. */
export interface ServerMemory {
  lastProbe(uid: string): Probe | undefined;
  /** Seconds that earlier starts took. */
  startSeconds(uid: string): number | undefined;
  noteProbe(uid: string, probe: Probe): void;
  /** Calls back when something else is remembered. Returns the function that ends this. */
  onChange(listener: () => void): () => void;
}
