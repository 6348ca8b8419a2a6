import { expect, it } from 'vitest';
import { wantsEvents } from '../../../src/http/interface/events/event-stream.ts';

it.each([
  [undefined, false],
  ['', false],
  ['*/*', false],
  ['application/json', false],
  ['text/event-stream', true],
  ['Text/Event-Stream; charset=utf-8', true],
  // What clients of MCP send.
  ['application/json, text/event-stream', false],
  ['text/event-stream, application/json', true],
  ['text/event-stream;q=0, application/json', false],
  ['text/event-stream;q=0', false],
  ['text/event-stream;q=0.5, application/json;q=0.4', true],
  ['text/event-stream;q=0.5, application/json', false],
  ['text/event-stream, */*', true],
  ['*/*, text/event-stream', true],
  ['*/*;q=0.9, text/event-stream;q=0.1', false],
  ['application/json;q=0, text/event-stream;q=0.1', true],
  ['application/json;q=0, */*, text/event-stream;q=0.1', true],
  ['text/event-streams', false],
])('%j asks for events: %s', (accept, expected) => {
  expect(wantsEvents({ headers: accept === undefined ? {} : { accept } })).toBe(expected);
});
