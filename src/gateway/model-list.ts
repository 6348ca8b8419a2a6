import type { Request, Response } from 'express';
import type { Model } from './balance/model.ts';
import { serves } from './find-model.ts';
import { PLAIN_NAMES, PLAIN_ROUTES } from './plain-routes.ts';
import { dialectsWithSalt, nativeDialects, PLAIN, quirksOf, type Dialect } from './dialects/index.ts';

/** A model as the list shows it: OpenAI's fields, then Berth's. */
export interface ModelRecord {
  id: string;
  object: 'model';
  /** Unix seconds. */
  created: number;
  owned_by: string;
  engine: string;
  /** `none`: the model takes no conversations. */
  dialects: Record<Dialect, 'native' | 'translated' | 'none'>;
  /** What else it takes, as paths of this interface. */
  endpoints: string[];
  ready_endpoints: number;
  /**
   * Requests of all callers at its servers: those that are worked on, and those that wait. Absent when no server says.
   * The tokens that these servers write in a second are absent where the engine does not count them as it writes.
   */
  load?: { running: number; waiting: number; tokens_per_second?: number };
  /**
   * Calls that wait in this replica of the gateway until a server has room, and seconds that one of the caller's tenant
   * would wait that came now: null while nobody knows. Absent where none waits.
   */
  queue?: { waiting: number; expected_wait_seconds: number | null };
  /** Where calls go that it cannot take, and why they do. */
  fallbacks?: { models: readonly string[]; on: readonly string[] };
  /** Tokens, null when the engine does not report it. */
  context_length: number | null;
  /** Calls leave the cluster. Only such models have this field. */
  outside?: true;
  /** A call brings up a server where none is ready. Only such models have this field and the next. */
  scales_from_zero?: true;
  /** Seconds that a start takes, as earlier ones did. Null before the first. */
  expected_start_seconds?: number | null;
  /** What the caller's tenant pays for a million tokens. Only models with a price have this field. */
  price_per_million_tokens?: { input: string; cached_input: string; output: string; currency: string };
}

/** What the caller sees of models. */
export interface Seen {
  /** The line in front of a model. */
  lineOf: (model: Model) => { waiting: number; expectedMs: number | undefined } | undefined;
  /** Whether there is a model of this name for the caller. */
  mayCall: (name: string) => boolean;
}

function modelRecord(model: Model, { lineOf, mayCall }: Seen): ModelRecord {
  const { name, facts, probe, isShared, readyCount, load, sleepers, prices, fallback, isOutside } = model;
  const line = lineOf(model);
  const fallbacks = fallback?.models.filter((other) => other !== name && mayCall(other)) ?? [];
  const engine = probe?.engine ?? 'unknown';
  const quirks = quirksOf(engine, probe?.version, name);
  const spoken = probe?.dialects ?? [];
  const native = nativeDialects(isShared ? dialectsWithSalt(spoken, quirks) : spoken, quirks, PLAIN);
  const support = (dialect: Dialect) => {
    if (probe !== undefined && probe.dialects.length === 0) return 'none';
    return native.includes(dialect) ? 'native' : 'translated';
  };
  const endpoints = PLAIN_NAMES.filter((route) => serves(probe, route));
  return {
    id: name,
    object: 'model',
    created: facts?.created ?? 0,
    owned_by: 'berth',
    engine,
    dialects: { chat: support('chat'), responses: support('responses'), messages: support('messages') },
    endpoints: endpoints.map((route) => PLAIN_ROUTES[route].path),
    ready_endpoints: readyCount,
    ...(load !== undefined && { load: loadRecord(load) }),
    ...(line !== undefined && { queue: { waiting: line.waiting, expected_wait_seconds: secondsOf(line.expectedMs) } }),
    ...(fallback !== undefined && fallbacks.length > 0 && { fallbacks: { models: fallbacks, on: fallback.on } }),
    context_length: facts?.contextLength ?? null,
    ...(isOutside && { outside: true }),
    ...(sleepers.length > 0 && {
      scales_from_zero: true,
      expected_start_seconds: sleepers.find(({ startSeconds }) => startSeconds !== undefined)?.startSeconds ?? null,
    }),
    ...(prices !== undefined && {
      price_per_million_tokens: {
        input: prices.input,
        cached_input: prices.cachedInput,
        output: prices.output,
        currency: prices.currency,
      },
    }),
  };
}

function loadRecord({ running, waiting, tokensPerSecond }: NonNullable<Model['load']>): ModelRecord['load'] {
  const speed = tokensPerSecond === undefined ? {} : { tokens_per_second: Math.round(tokensPerSecond) };
  return { running, waiting, ...speed };
}

function secondsOf(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.ceil(ms / 1000);
}

/** Anthropic's SDKs name their API version in a header, and expect fields of their own beside OpenAI's. */
export function wantsAnthropic({ headers }: Request): boolean {
  return headers['anthropic-version'] !== undefined;
}

function withAnthropicFields(record: ModelRecord): object {
  const created = new Date(record.created * 1000).toISOString();
  return { ...record, type: 'model', display_name: record.id, created_at: created };
}

export function sendModel(request: Request, response: Response, model: Model, seen: Seen): void {
  const record = modelRecord(model, seen);
  response.json(wantsAnthropic(request) ? withAnthropicFields(record) : record);
}

/** The list of models as JSON. */
export function modelsBody(models: readonly Model[], seen: Seen, isAnthropic: boolean): Buffer {
  const data = models.map((model) => modelRecord(model, seen));
  const body = isAnthropic
    ? {
        object: 'list',
        data: data.map(withAnthropicFields),
        first_id: data[0]?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
        has_more: false,
      }
    : { object: 'list', data };
  return Buffer.from(JSON.stringify(body));
}
