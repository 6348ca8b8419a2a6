/** What is long or many takes time by its length: one call must not keep the others waiting. */
import { describe, expect, it } from 'vitest';
import { translateRequest } from '../../../../src/gateway/dialects/index.ts';
import { cpuTime } from '../../../support/cpu-time.ts';
import { at, VLLM } from './support.ts';

describe('requests', () => {
  it('of many system messages after one of the user are folded, the body left as it was', async () => {
    const first = { role: 'user', content: [{ type: 'text', text: 'go' }] };
    const messages = [first, ...Array.from({ length: 100_000 }, () => ({ role: 'system', content: '' }))];
    const asked = { model: 'm', max_tokens: 10, messages };
    let body = {};
    const work = () => (body = translateRequest('messages', 'chat', asked, { model: 'm', quirks: VLLM }));
    expect(await cpuTime(work)).toBeLessThan(3000);
    expect(at(body, 'messages.0.content.length')).toBe(100_001);
    expect(first.content).toHaveLength(1);
  });
});
