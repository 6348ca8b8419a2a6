import { describe, expect, it } from 'vitest';
import { eventsOf } from '../../../src/wire/event-stream.ts';

/** A body that comes in pieces of so many bytes. */
function bodyOf(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  );
  return ReadableStream.from(pieces);
}

async function all(text: string, size: number): Promise<object[]> {
  const events: object[] = [];
  for await (const event of eventsOf(bodyOf(text, size))) events.push(event);
  return events;
}

describe('the events of a stream', () => {
  const EXPECTED = [
    { type: 'a', id: '1', data: 'one' },
    { type: 'message', id: '1', data: 'two\nlines' },
    { type: 'message', id: '1', data: ' and a space' },
    { type: 'b', id: '1', data: '' },
    { type: 'message', id: '', data: 'of no event' },
  ];
  const TEXT = [
    ': a comment\n\nevent: a\nid: 1\ndata: one\n\n',
    'data:two\ndata:lines\n\n',
    'data:  and a space\n\n',
    'event: b\ndata\n\n',
    'event: only a name\n\n',
    'id\nid: with \0\ndata: of no event\n\n',
    'data: cut off',
  ].join('');

  it.each([1, 2, 3, 7, 1000])('are the same in pieces of %i bytes', async (size) => {
    expect(await all(TEXT, size)).toEqual(EXPECTED);
  });

  it.each(['\r\n', '\r'])('may have any line end: %j', async (end) => {
    for (const size of [1, 2, 5, 1000]) expect(await all(TEXT.replaceAll('\n', end), size)).toEqual(EXPECTED);
  });

  it.each(['\n', '\r\n', '\r'])('ends where its last line does: %j', async (end) => {
    for (const size of [1, 1000]) {
      expect(await all(`data: x${end}${end}`, size)).toEqual([{ type: 'message', id: '', data: 'x' }]);
    }
  });

  it('are not read further than somebody wants', async () => {
    let cancelled = false;
    const cancel = (): void => {
      cancelled = true;
    };
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void =>
      controller.enqueue(Buffer.from('data: x\n\n'));
    for await (const { data } of eventsOf(new ReadableStream({ pull, cancel }))) {
      expect(data).toBe('x');
      break;
    }
    expect(cancelled).toBe(true);
  });

  it('have long lines that come in many pieces', async () => {
    const long = 'x'.repeat(1_000_000);
    expect(await all(`data: ${long}\n\n`, 100)).toEqual([{ type: 'message', id: '', data: long }]);
  });
});
