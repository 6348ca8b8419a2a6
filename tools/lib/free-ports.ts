import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { LocalFailure, systemCode } from './failure.ts';

/**
 * Below the ports that kernels give to outgoing connections (Linux: net.ipv4.ip_local_port_range, from 32768 on) and those
 * of Services (30000 to 32767). One that the kernel chose might go to a connection before it is used.
 */
const FIRST = 20_000;
/** A process takes its ports from one part of them, one after the other. */
const PARTS = 50;
const PART = 200;

let last = randomInt(PART);

/** Not the one of another process that looks for a port just now, and none that was given away and is not used yet. */
function nextPort(): number {
  last = (last + 1) % PART;
  return FIRST + (process.pid % PARTS) * PART + last;
}

/** Free loopback ports, all different. Another program may take one before it is used; then the start fails and says so. */
export async function freePorts(count: number): Promise<number[]> {
  const servers: Server[] = [];
  try {
    while (servers.length < count) servers.push(await listenOnFree());
    return servers.map(portOf);
  } finally {
    await Promise.all(servers.map(close));
  }
}

/** Throws LocalFailure when the loopback port cannot be listened on. */
export async function requirePort(port: number, use: string): Promise<void> {
  try {
    await close(await listen(port));
  } catch (error) {
    const code = systemCode(error);
    const why = code === 'EADDRINUSE' ? 'is in use' : `cannot be listened on (${code ?? String(error)})`;
    throw new LocalFailure(
      `Port ${port} for ${use} ${why}.`,
      code === 'EADDRINUSE'
        ? 'Stop the program that listens there, name another port, or name none: then a free one is taken.'
        : 'Name another port.',
    );
  }
}

async function listenOnFree(): Promise<Server> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await listen(nextPort());
    } catch (error) {
      if (systemCode(error) !== 'EADDRINUSE' || tries === PART) throw error;
    }
  }
}

function listen(port: number): Promise<Server> {
  const server = createServer();
  return new Promise((settle, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', () => settle(server));
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('A TCP server has no port.');
  return address.port;
}

function close(server: Server): Promise<void> {
  return new Promise((settle) => {
    server.close(() => settle());
  });
}
