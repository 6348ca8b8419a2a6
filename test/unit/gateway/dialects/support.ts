import {
  quirksOf,
  type Dialect,
  type HistoryItem,
  type TranslationContext,
} from '../../../../src/gateway/dialects/index.ts';

/** The value at a dotted path (`messages.0.content`), undefined where there is none. */
export function at(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], value);
}

export const VLLM = quirksOf('vllm', '0.20.0', 'Qwen/Qwen3-8B');
export const OLLAMA = quirksOf('ollama', '0.32.15', 'qwen3:8b');
export const MISTRAL = quirksOf('vllm', '0.20.0', 'mistralai/Mistral-Small-3.2');

export function contextOf(request: unknown = {}, history: readonly HistoryItem[] = []): TranslationContext {
  return { id: '0a1b2c', createdAt: 1_790_000_000, model: 'served', request, history };
}

export const DIALECTS: readonly Dialect[] = ['chat', 'responses', 'messages'];

export const WEATHER = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
