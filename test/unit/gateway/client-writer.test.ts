import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Dialect } from '../../../src/gateway/dialects/index.ts';
import { ClientWriter } from '../../../src/gateway/calls/client-writer.ts';

const COMMENT = ': waiting for the model\n\n';
const PING = 'event: ping\ndata: {"type":"ping"}\n\n';

/** A response that records what is written and can be full. */
class RecordedResponse extends EventEmitter {
  status = 0;
  headers: Record<string, unknown> = {};
  written: string[] = [];
  headersSent = false;
  writableEnded = false;
  writableFinished = false;
  writableNeedDrain = false;
  req = { complete: true };

  writeHead(status: number, headers: Record<string, unknown>): this {
    this.status = status;
    this.headers = headers;
    this.headersSent = true;
    return this;
  }

  write(data: string): boolean {
    this.written.push(data);
    return !this.writableNeedDrain;
  }

  end(data?: string): void {
    if (data !== undefined) this.written.push(data);
    this.writableEnded = true;
    this.writableFinished = true;
    this.emit('close');
  }

  destroy(): void {
    this.emit('close');
  }
}

function setup(dialect: Dialect = 'chat') {
  const response = new RecordedResponse();
  const client = new ClientWriter(response as unknown as ServerResponse, dialect, 'id');
  const flow = { pause: vi.fn(), resume: vi.fn() };
  return { response, client, flow };
}

describe('ClientWriter', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('writes a comment every ten seconds until the first byte', () => {
    const { response, client } = setup();
    client.keepAlive();
    vi.advanceTimersByTime(9999);
    expect(response.headersSent).toBe(false);
    vi.advanceTimersByTime(10_001);
    expect(response.status).toBe(200);
    expect(response.written).toEqual([COMMENT, COMMENT]);
  });

  it.each([
    ['chat', COMMENT],
    ['responses', COMMENT],
    ['messages', PING],
  ] as const)(
    'keeps a silent stream of %s alive after the first byte too, and a busy one as it is',
    (dialect, sign) => {
      const { response, client, flow } = setup(dialect);
      client.keepAlive();
      for (let count = 0; count < 30; count += 1) {
        client.write('data: x\n\n', flow);
        vi.advanceTimersByTime(1000);
      }
      expect(response.written).toHaveLength(30);
      vi.advanceTimersByTime(20_000);
      expect(response.written.slice(30)).toEqual([sign, sign]);
      client.endStream('data: end\n\n');
      vi.advanceTimersByTime(60_000);
      expect(response.written).toHaveLength(33);
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  it.each(['data: half', 'data: half\n', 'event: x\ndata: {}\r\n'])('never writes inside an event: %j', (piece) => {
    const { response, client, flow } = setup();
    client.keepAlive();
    client.write(piece, flow);
    vi.advanceTimersByTime(60_000);
    expect(response.written).toEqual([piece]);
    client.write(Buffer.from('{}\r\n\r\n'), flow);
    vi.advanceTimersByTime(20_000);
    expect(response.written.slice(2)).toEqual([COMMENT]);
  });

  it('adds nothing for a client that does not read', () => {
    const { response, client, flow } = setup();
    client.keepAlive();
    response.writableNeedDrain = true;
    client.write('data: 1\n\n', flow);
    response.writableNeedDrain = false;
    vi.advanceTimersByTime(60_000);
    expect(response.written).toHaveLength(1);
    response.emit('drain');
    vi.advanceTimersByTime(10_000);
    expect(response.written).toHaveLength(2);
  });

  it('is not started by comments: another endpoint may still answer', () => {
    const { client } = setup();
    client.keepAlive();
    vi.advanceTimersByTime(10_000);
    expect(client.started).toBe(false);
  });

  it('sends an error inside the stream once comments were sent', () => {
    const { response, client } = setup();
    client.keepAlive();
    vi.advanceTimersByTime(10_000);
    client.sendError({ status: 502, message: 'It is gone.' }, 1000);
    expect(response.status).toBe(200);
    expect(response.written.at(-1)).toMatch(/^data: \{"error":\{.*It is gone\./);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('holds the engine back while the client reads nothing, and gives up after five minutes', () => {
    const { response, client, flow } = setup();
    const gone = vi.fn();
    client.onOver(gone);
    response.writableNeedDrain = true;
    client.write('data: 1\n\n', flow);
    client.write('data: 2\n\n', flow);
    expect(flow.pause).toHaveBeenCalledTimes(1);
    response.emit('drain');
    expect(flow.resume).toHaveBeenCalledTimes(1);
    client.write('data: 3\n\n', flow);
    vi.advanceTimersByTime(300_000);
    expect(client.gone).toBe(true);
    expect(gone).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('closes the connection when it refuses a body that is still under way', () => {
    const { response, client } = setup();
    response.req.complete = false;
    client.sendError({ status: 413, message: 'Too long.' });
    expect(response.headers.connection).toBe('close');
  });
});
