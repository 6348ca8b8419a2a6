import type { Request, Response } from 'express';
import { nativeDialects, PLAIN, quirksOf, type Dialect } from './dialects/index.ts';
import type { Pool } from './balance/pool.ts';
import { DIALECTS } from './discovery/types.ts';

/** A model as the list shows it: OpenAI's fields, then ours. */
export interface ModelRecord {
  id: string;
  object: 'model';
  /** Unix seconds. */
  created: number;
  owned_by: string;
  engine: string;
  dialects: Record<Dialect, 'native' | 'translated'>;
  ready_endpoints: number;
  /** Tokens, null when the engine does not tell. */
  context_length: number | null;
}

function modelRecord({ model, facts, probe, readyCount }: Pool): ModelRecord {
  const engine = probe?.engine ?? 'unknown';
  const native = nativeDialects(probe?.dialects ?? [], quirksOf(engine, probe?.version, model), PLAIN);
  const shown = (dialect: Dialect) => (native.includes(dialect) ? 'native' : 'translated');
  return {
    id: model,
    object: 'model',
    created: facts?.created ?? 0,
    owned_by: 'berth',
    engine,
    dialects: { chat: shown(DIALECTS[0]), responses: shown(DIALECTS[1]), messages: shown(DIALECTS[2]) },
    ready_endpoints: readyCount,
    context_length: facts?.contextLength ?? null,
  };
}

/** Anthropic's SDKs say which API version they speak; they expect fields of their own beside OpenAI's. */
function wantsAnthropic({ headers }: Request): boolean {
  return headers['anthropic-version'] !== undefined;
}

function withAnthropicFields(record: ModelRecord): object {
  const created = new Date(record.created * 1000).toISOString();
  return { ...record, type: 'model', display_name: record.id, created_at: created };
}

export function sendModel(request: Request, response: Response, pool: Pool): void {
  const record = modelRecord(pool);
  response.json(wantsAnthropic(request) ? withAnthropicFields(record) : record);
}

export function sendModels(request: Request, response: Response, pools: readonly Pool[]): void {
  const data = pools.map(modelRecord);
  if (!wantsAnthropic(request)) {
    response.json({ object: 'list', data });
    return;
  }
  const [first, last] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
  const models = data.map(withAnthropicFields);
  response.json({ object: 'list', data: models, first_id: first, last_id: last, has_more: false });
}
