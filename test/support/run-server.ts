import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { type WebSocket, WebSocketServer } from 'ws';
import { frame } from './channel-server.ts';

const ID = 'i-run1';

/** Bytes of a line. */
const MOST = 64 * 1024;

const OFFER = {
  id: 7,
  gpu_name: 'NVIDIA-L4',
  gpu_count: 1,
  gpu_memory_mb: 23034,
  isolation: 'whole',
  mig_profile: null,
  available: 1,
  simulated: false,
  price_per_hour: { on_demand: '0.50', interruptible: '0.20', currency: 'USD' },
  cpu_cores: 4,
  memory_mb: 16384,
  disk_gb_max: 100,
  image_cached: true,
};

/** A server whose one instance runs its program, and the commands in it, on this machine, in a folder of their own. */
export interface RunServer extends AsyncDisposable {
  url: string;
  /** Calls so far, and the body of the rental. */
  calls: string[];
  rented: { command?: string[]; args?: string[] } | undefined;
  isDeleted: boolean;
  /** The folder that the instance has in the place of /workspace. */
  workspace: string;
  /** Changes what the instance is; the program does not start in one that fails. */
  state: { state: string; reason: string; message: string; simulated?: boolean };
  /** Changes what is for rent. */
  offer: Partial<typeof OFFER>;
  /** What happens while the server rents. */
  whileRenting: () => Promise<void>;
  /** Refuses commands with this status. */
  refusesCommands: number | undefined;
  /** How often it did. */
  refusals: number;
  /** A folder of programs that the image has before those of this machine. */
  programs: string | undefined;
  /** A folder of programs that are all that commands find. */
  hasOnly: string | undefined;
  /** What prints the archive of the files, in the place of what is asked for. */
  packsWith: string | undefined;
  /** Starts the program anew on the disk of before, as after an interruption. */
  startAgain(): void;
  /** Breaks all connections, as the kill of a replica does. */
  cut(): void;
}

export async function runServer(): Promise<RunServer> {
  const workspace = await mkdtemp(join(tmpdir(), 'berth-workspace-'));
  const there = (text: string): string => text.replaceAll('/workspace', workspace);
  const lines: string[] = [];
  const readers = new Set<() => void>();
  const sockets = new Set<Socket>();
  const running = new Set<ChildProcess>();
  const starts = new Set<ChildProcess>();
  let isOver = false;
  const server = createServer((request, response) => void reply(request, response));
  const self: RunServer = {
    url: '',
    calls: [],
    rented: undefined,
    isDeleted: false,
    workspace,
    state: { state: 'running', reason: 'Running', message: '' },
    offer: {},
    whileRenting: async () => undefined,
    refusesCommands: undefined,
    refusals: 0,
    packsWith: undefined,
    programs: undefined,
    hasOnly: undefined,
    startAgain: () => {
      for (const child of starts) child.removeAllListeners('close').kill('SIGKILL');
      start();
    },
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
    [Symbol.asyncDispose]: async () => {
      for (const child of running) child.kill('SIGKILL');
      self.cut();
      server.close();
      await rm(workspace, { recursive: true, force: true });
    },
  };

  function start(): void {
    const [program = '', ...words] = [...(self.rented?.command ?? []), ...(self.rented?.args ?? [])].map(there);
    const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(child);
    starts.add(child);
    for (const output of [child.stdout, child.stderr]) {
      createInterface({ input: output }).on('line', (line) => {
        lines.push(line.length > MOST ? `${line.slice(0, MOST)} [line cut by Berth]` : line);
        for (const read of readers) read();
      });
    }
    child.once('close', () => {
      isOver = true;
      running.delete(child);
      for (const read of readers) read();
    });
  }

  const record = () => ({
    simulated: false,
    ...self.state,
    id: ID,
    name: null,
    stages: { ready: '2026-01-01T00:00:01Z' },
    created_at: '2026-01-01T00:00:00Z',
    place_in_line: null,
    warnings: [],
    command: self.rented?.command ?? null,
  });

  function follow(request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    let next = Number(request.headers['last-event-id'] ?? 0);
    const read = (): void => {
      for (; next < lines.length; next += 1) {
        const data = JSON.stringify({ id: String(next + 1), at: 't', text: lines[next] });
        response.write(`event: line\nid: ${next + 1}\ndata: ${data}\n\n`);
      }
      if (isOver || self.state.state === 'failed') response.end(`event: end\ndata: ${JSON.stringify(self.state)}\n\n`);
    };
    readers.add(read);
    response.once('close', () => readers.delete(read));
    read();
  }

  async function reply(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = ''] = (request.url ?? '').replace('/api/v1', '').split('?');
    self.calls.push(`${request.method} ${path}`);
    const answer = (body: unknown, status = 200): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (path === '/offers/search') return answer({ data: [{ ...OFFER, ...self.offer }] });
    if (request.method === 'POST' && path === '/instances') {
      self.rented = (await json(request)) as NonNullable<RunServer['rented']>;
      await self.whileRenting();
      if (self.state.state === 'running') start();
      return answer(record(), 201);
    }
    if (path.endsWith('/logs')) return follow(request, response);
    if (request.method === 'DELETE') {
      self.isDeleted = true;
      return answer({});
    }
    if (request.headers.accept !== 'text/event-stream') return answer(record());
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`event: snapshot\nid: 1\ndata: ${JSON.stringify(record())}\n\n`);
  }

  function serve(client: WebSocket, command: string): void {
    const PATH = [self.programs, self.hasOnly ?? process.env['PATH']].filter(Boolean).join(delimiter);
    const asked = command.includes('tar -cf') ? (self.packsWith ?? command) : command;
    const child = spawn('sh', ['-c', there(asked)], { stdio: 'pipe', env: { ...process.env, PATH } });
    running.add(child);
    child.stdin.on('error', () => undefined);
    client.on('message', (data: Buffer) => {
      if (data[0] === 0) child.stdin.write(data.subarray(1));
      if (data[0] === 255) child.stdin.end();
    });
    client.once('close', () => child.kill());
    child.stdout.on('data', (part: Buffer) => client.send(frame(1, part)));
    child.stderr.on('data', (part: Buffer) => client.send(frame(2, part)));
    child.once('close', (code) => {
      running.delete(child);
      const causes = [{ reason: 'ExitCode', message: String(code) }];
      client.send(
        frame(3, JSON.stringify(code === 0 ? { status: 'Success' } : { status: 'Failure', details: { causes } })),
      );
      client.close();
    });
  }

  const handshakes = new WebSocketServer({ noServer: true, handleProtocols: () => 'v5.channel.k8s.io' });
  server.on('connection', (socket: Socket) => sockets.add(socket.once('close', () => sockets.delete(socket))));
  server.on('upgrade', (request, socket, head) => {
    if (self.refusesCommands !== undefined) {
      self.refusals += 1;
      const code = self.refusesCommands === 409 ? 'instance_not_running' : 'x';
      const body = `{"error":{"code":"${code}","message":"No commands here."}}`;
      socket.end(`HTTP/1.1 ${self.refusesCommands} Refused\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      return;
    }
    const command = new URL(request.url ?? '', 'http://localhost').searchParams.get('command') ?? '';
    handshakes.handleUpgrade(request, socket, head, (client) => serve(client, command));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  self.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return self;
}
