import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { TerminalGateway } from '../../../src/http/features/terminal/pass-on.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { gpuInstance } from '../../support/inventory-world.ts';
import {
  caller,
  openTerminal,
  TerminalClient,
  terminalWorld,
  type TerminalWorld,
} from '../../support/terminal-world.ts';
import { waitFor } from '../../support/wait-for.ts';

const BEARER = 'base64url.bearer.authorization.k8s.io.';
const V5 = 'v5.channel.k8s.io';

let api: LoneApi;
let world: TerminalWorld;
let url: string;
const logged: string[] = [];

function instance(): GpuInstance {
  const made = gpuInstance('i-one');
  return { ...made, metadata: { ...made.metadata, namespace: 'team' } };
}

beforeAll(async () => {
  world = await terminalWorld();
  // The token of a tenant is its name.
  world.tokens.set('team', caller('key-of-team'));
  const terminals = new TerminalGateway(new URL(`http://127.0.0.1:${world.server.address.port}`));
  const log = pino({ level: 'trace' }, { write: (line: string) => void logged.push(line) });
  const keys = { reader: { scopes: ['compute:read' as const] } };
  api = await startLoneApi({
    tenants: ['team', 'other', 'reader'],
    instances: [instance()],
    terminals,
    keys,
    log,
  });
  url = `ws://127.0.0.1:${api.address.port}/api/v1/instances/i-one/terminal`;
});
afterAll(async () => {
  await api.close();
  await world[Symbol.asyncDispose]();
});

function encoded(token: string): string {
  return `${BEARER}${Buffer.from(token).toString('base64url')}`;
}

/** A client as a browser makes it: with a token among the protocols, and an Origin. */
function browser(token: string, origin?: string): TerminalClient {
  return new TerminalClient(new WebSocket(url, [V5, encoded(token)], origin === undefined ? {} : { origin }));
}

describe('a terminal over the API', () => {
  it('opens with a key in the header', async () => {
    const client = openTerminal(url, 'team');
    await client.shows('$ ');
    client.send(0, 'typed');
    await client.shows('typed');
    client.socket.close();
    await waitFor('the end', () => client.closed);
  });

  it('opens with a token among the protocols, of which the answer names none', async () => {
    const client = browser('team', `http://127.0.0.1:${api.address.port}`);
    await client.shows('$ ');
    expect(client.socket.protocol).toBe(V5);
    client.socket.close();
    await waitFor('the log line', () => logged.some((line) => line.includes('/terminal')));
    expect(logged.join('')).not.toContain(encoded('team').slice(BEARER.length));
  });

  it.each([
    ['a page of another site', 'team', 'https://evil.example', 400],
    ['a page of an instance', 'team', 'http://8888-uid.localhost:8080', 400],
    ['a wrong key', 'wrong', undefined, 401],
    ['a key that reads', 'reader', undefined, 403],
  ])('is refused to %s', async (_who, token, origin, status) => {
    const shells = () => world.kubelet.paths.filter((path) => path.includes('tty=true')).length;
    const before = shells();
    const client = browser(token, origin);
    expect(await waitFor('the refusal', () => client.refused)).toMatchObject({ status });
    expect(shells()).toBe(before);
  });

  it('takes a token among the protocols at no other endpoint', async () => {
    const answer = await fetch(`http://127.0.0.1:${api.address.port}/api/v1/instances`, {
      headers: { 'sec-websocket-protocol': encoded('team') },
    });
    expect(answer.status).toBe(401);
  });

  it('says how to open it to a caller without a WebSocket', async () => {
    const headers = { authorization: 'Bearer team' };
    const answer = await fetch(url.replace('ws', 'http'), { headers });
    expect([answer.status, await answer.json()]).toMatchObject([426, { error: { code: 'upgrade_required' } }]);
    const post = await fetch(url.replace('ws', 'http'), { method: 'POST', headers });
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
  });

  it('believes the SSH gateway about the key, which checks it again', async () => {
    world.tokens.delete('team');
    const client = openTerminal(url, 'team');
    expect(await waitFor('the refusal', () => client.refused)).toMatchObject({ status: 401 });
    world.tokens.set('team', caller('key-of-team'));
  });
});

it('without an SSH gateway the answer is 503', async () => {
  const lone = await startLoneApi({
    tenants: ['team'],
    instances: [instance()],
    terminals: new TerminalGateway(new URL('http://127.0.0.1:1')),
  });
  const client = openTerminal(`ws://127.0.0.1:${lone.address.port}/api/v1/instances/i-one/terminal`, 'team');
  const { status, text } = await waitFor('the refusal', () => client.refused);
  expect([status, text]).toEqual([503, expect.stringContaining('terminal_unavailable')]);
  await lone.close();
});
