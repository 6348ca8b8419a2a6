import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { download, Unavailable } from '../../../tools/lib/download.ts';

const CONTENT = Buffer.from('a program '.repeat(50_000));

let folder = '';
let server: Server;
let ranges: (string | undefined)[] = [];
const sizes: (number | undefined)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-download-'));
  ranges = [];
  sizes.length = 0;
});

afterEach(() => {
  server.close();
  server.closeAllConnections();
  rmSync(folder, { recursive: true });
});

function path(): string {
  return join(folder, 'program');
}

async function fetchFrom(listener: RequestListener, content = CONTENT): Promise<void> {
  server = createServer((request, response) => {
    ranges.push(request.headers.range);
    listener(request, response);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  await again(content);
}

async function again(content = CONTENT): Promise<void> {
  const { port } = server.address() as AddressInfo;
  await download({
    url: `http://127.0.0.1:${port}/program`,
    sha256: createHash('sha256').update(content).digest('hex'),
    path: path(),
    onBytes: (_present, size) => void sizes.push(size),
    signal: new AbortController().signal,
  });
}

/** Sends what is asked for, at most `most` bytes of it before the connection breaks. */
function serve(most: number): RequestListener {
  return (request, response) => {
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const rest = CONTENT.subarray(from);
    response.writeHead(from > 0 ? 206 : 200, { 'content-length': rest.length });
    if (rest.length <= most) response.end(rest);
    else response.write(rest.subarray(0, most), () => setImmediate(() => response.destroy()));
  };
}

describe('download', () => {
  it('writes a file with the right hash, and says its size', async () => {
    await fetchFrom(serve(Infinity));
    expect(readFileSync(path()).equals(CONTENT)).toBe(true);
    expect(sizes.at(-1)).toBe(CONTENT.length);
  });

  it('goes on where a connection broke', async () => {
    await fetchFrom(serve(200_000));
    expect(readFileSync(path()).equals(CONTENT)).toBe(true);
    expect(ranges.length).toBeGreaterThan(2);
    expect(ranges.slice(1).every((range) => range !== undefined)).toBe(true);
    expect(sizes.at(-1)).toBe(CONTENT.length);
  });

  it('goes on in a later call, with a server that failed in between', async () => {
    let calls = 0;
    const listener: RequestListener = (request, response) => {
      calls += 1;
      if (calls === 2) response.writeHead(503).end();
      else serve(calls === 1 ? 200_000 : Infinity)(request, response);
    };
    await expect(fetchFrom(listener)).rejects.toThrow(Unavailable);
    await again();
    expect(readFileSync(path()).equals(CONTENT)).toBe(true);
    expect(ranges.at(-1)).toMatch(/^bytes=[1-9]/);
  });

  it('begins anew where the server does not know ranges', async () => {
    let calls = 0;
    await fetchFrom((request, response) => {
      calls += 1;
      delete request.headers.range;
      serve(calls === 1 ? 200_000 : Infinity)(request, response);
    });
    expect(readFileSync(path()).equals(CONTENT)).toBe(true);
  });

  it('keeps nothing of another file, and says its hash', async () => {
    const answer = fetchFrom(serve(Infinity), Buffer.from('another'));
    await expect(answer).rejects.toThrow(/^has another file .* sha256 [0-9a-f]{64}: nothing of it is kept$/);
    await expect(answer).rejects.toBeInstanceOf(Unavailable);
    expect([path(), `${path()}.partial`].some((file) => existsSync(file))).toBe(false);
  });

  it.each([
    ['a refusal', 403, 'application/xml', 'answers 403'],
    ['the login page of a network', 200, 'text/html; charset=utf-8', 'web page'],
  ])('takes nothing from %s', async (_name, status, type, message) => {
    const answer = fetchFrom((_request, response) => {
      response.writeHead(status, { 'content-type': type }).end('<html>');
    });
    await expect(answer).rejects.toThrow(message);
    await expect(answer).rejects.toBeInstanceOf(Unavailable);
    expect(existsSync(`${path()}.partial`)).toBe(false);
  });

  it('says why a host cannot be reached', async () => {
    await fetchFrom(serve(Infinity));
    const { port } = server.address() as AddressInfo;
    server.close();
    server.closeAllConnections();
    const { signal } = new AbortController();
    const options = { url: `http://127.0.0.1:${port}/program`, sha256: '', path: path(), signal };
    await expect(download({ ...options, onBytes: () => undefined })).rejects.toThrow('ECONNREFUSED');
  });
});
