import type { Dialect, Engine } from '../dialects/index.ts';

export const DIALECTS = ['chat', 'responses', 'messages'] as const satisfies readonly Dialect[];

export const ENGINES = ['vllm', 'sglang', 'llama.cpp', 'ollama', 'tgi', 'unknown'] as const satisfies readonly Engine[];

/** One model as its server lists it. */
export interface ServedModel {
  id: string;
  /** Tokens; absent when the engine does not tell. */
  contextLength?: number;
  /** Unix seconds. */
  created?: number;
}

/** What one probe of one pod found out. */
export interface Probe {
  engine: Engine;
  version?: string;
  /** Path in front of `/v1`, found out or given by annotation. */
  prefix: string;
  models: readonly ServedModel[];
  dialects: readonly Dialect[];
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

/** A labelled Service, read. */
export interface ServerSpec {
  namespace: string;
  name: string;
  uid: string;
  shared: boolean;
  /** Port name or number as the annotation gives it. */
  port?: string;
  prefix?: string;
  aliases: readonly ModelAlias[];
  engine?: Engine;
  dialects?: readonly Dialect[];
  /** Unix seconds. */
  created: number;
  /** Annotations that could not be understood, for the log. */
  problems: readonly string[];
}

/** One address of one server, from its EndpointSlices. */
export interface Target {
  /** UIDs of the Service and the pod (or its address when no pod stands behind it) and port: the identity of a probe. */
  key: string;
  /** `http://ip:port`: never leaves the process. */
  origin: string;
  /** Changes when a container of the pod restarted, which makes a new probe due. */
  incarnation: string;
  server: ServerSpec;
  /** Ready and serving, and neither the endpoint nor its pod is terminating. */
  available: boolean;
}
