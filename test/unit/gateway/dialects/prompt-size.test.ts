import { describe, expect, it } from 'vitest';
import { promptTokens } from '../../../../src/gateway/dialects/index.ts';

/** A megabyte in base64. */
const DATA = 'iVBORw0KGgo'.repeat(95_326);
const URL = `data:image/png;base64,${DATA}`;
const ANTHROPIC = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: DATA } };
const TEXT_URL = `data:text/plain;base64,${DATA}`;
const documentOf = (type: string) => ({
  type: 'document',
  source: { type: 'base64', media_type: type, data: DATA },
});

function count(body: object): number {
  return promptTokens(body as Record<string, unknown>, JSON.stringify(body).length);
}

describe('the size of a prompt', () => {
  it.each([
    ['chat', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: URL } }] }] }],
    ['responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: URL }] }] }],
    [
      'a result in responses',
      { input: [{ type: 'function_call_output', output: [{ type: 'input_image', image_url: URL }] }] },
    ],
    ['messages', { messages: [{ role: 'user', content: [ANTHROPIC] }] }],
    [
      'a result in messages',
      { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [ANTHROPIC] }] }] },
    ],
  ])('counts an image as one, whatever its bytes: %s', (_name, body) => {
    expect(count(body)).toBeGreaterThan(1500);
    expect(count(body)).toBeLessThan(1700);
  });

  it('counts each image', () => {
    const part = { type: 'image_url', image_url: { url: URL } };
    expect(count({ messages: [{ role: 'user', content: [part, part, part] }] })).toBeGreaterThan(4500);
  });

  it('counts text by its bytes, also where it says that it is an image', () => {
    const text = 'x'.repeat(400_000);
    for (const content of [text, [{ type: 'text', text }], [{ type: 'text', text: `data:image/png;base64,${text}` }]])
      expect(count({ messages: [{ role: 'user', content }] })).toBeGreaterThan(100_000);
    const url = { type: 'image_url', image_url: { url: text } };
    expect(count({ messages: [{ role: 'user', content: [url] }] })).toBeGreaterThan(100_000);
    expect(count({ input: 'x'.repeat(40) })).toBe(13);
  });

  it.each([
    ['messages', { messages: [{ role: 'user', content: [documentOf('text/plain')] }] }],
    ['chat', { messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: TEXT_URL } }] }] }],
    ['responses', { input: [{ role: 'user', content: [{ type: 'input_file', file_data: TEXT_URL }] }] }],
  ])('counts a file of text by its bytes, because it becomes a part of the prompt: %s', (_name, body) => {
    expect(count(body)).toBeGreaterThan(200_000);
  });

  it('counts any other file as an image', () => {
    const content = [documentOf('application/pdf')];
    expect(count({ messages: [{ role: 'user', content }] })).toBeLessThan(1700);
  });

  it.each([
    {},
    { messages: 5 },
    { messages: [null, { content: [null, { type: 'image', source: 7 }] }] },
    { input: {} },
  ])('takes any body: %j', (body) => {
    expect(promptTokens(body, 100_000)).toBe(25_000);
  });
});
