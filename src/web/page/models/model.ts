import type { Dialect } from './dialects.ts';

/** A model as GET /models shows it. */
export interface Model {
  id: string;
  engine: string;
  dialects: Readonly<Record<Dialect, 'native' | 'translated' | 'none'>>;
  /** What else it takes, as paths of the API. */
  endpoints: readonly string[];
  ready_endpoints: number;
  /** Requests of all callers; absent where the servers do not say. */
  load?: { running: number; waiting: number };
  /** Tokens; null when the engine does not say. */
  context_length: number | null;
  scales_from_zero?: boolean;
  expected_start_seconds?: number | null;
}

export function takes(model: Model, dialect: Dialect): boolean {
  return model.dialects[dialect] !== 'none';
}

/** Whether it takes conversations at all. */
export function talks(model: Model): boolean {
  return takes(model, 'chat') || takes(model, 'responses') || takes(model, 'messages');
}
