import type { Probe } from '../../src/gateway/discovery/types.ts';

/** What a probe found of a server that speaks chat and has no model. */
export function probeOf(more: Partial<Probe> = {}): Probe {
  return {
    engine: 'vllm',
    prefix: '',
    models: [],
    dialects: ['chat'],
    plainPaths: {},
    countTokens: false,
    tokenize: false,
    ...more,
  };
}
