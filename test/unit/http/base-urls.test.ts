import { expect, it } from 'vitest';
import { noEndpoint } from '../../../src/http/interface/errors/api-error.ts';

const BASE = 'ends in /api/v1 here';

it.each([
  ['/v1/chat/completions', BASE],
  ['/chat/completions?api-version=2024-10-21', BASE],
  ['/openai/deployments/gpt/chat/completions', BASE],
  ['/api/v1/chat/completions/chat/completions', BASE],
  ['/api/messages', BASE],
  ['/v1/models', BASE],
  ['/models?limit=1000', BASE],
  ['/v1/models/org/name', BASE],
  ['/v1beta/models/name:generateContent', BASE],
  ['/api/tags', "Ollama's own API"],
  ['/api/chat', "Ollama's own API"],
  ['/instance', 'See /docs'],
])('a client that asks at %s is told what to do', (url, help) => {
  expect(noEndpoint({ url }).message).toContain(help);
});
