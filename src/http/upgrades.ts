import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { http } from '../lib/lean-http.ts';

interface Upgrade {
  socket: Duplex;
  head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** The socket of a request that asks to switch protocols. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return upgrades.get(request);
}

/**
 * Requests for other protocols are answered as if they had not asked (RFC 9110 section 7.8). So are requests with a
 * body, which no handshake has (RFC 6455 section 4.1): Node would hand over a stream that is no socket.
 */
export function isWebSocket({ method, headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0) return false;
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

/**
 * Passes requests for a WebSocket to the app, through authentication, limits and the log like all others. A handler that
 * does not switch answers as usual, and the connection ends: Node no longer applies time limits to it, and nothing reads
 * from it that would notice that the client is gone. The function returned cuts the connections that are open.
 */
export function serveUpgrades(server: Server, app: RequestListener): () => void {
  const open = new Set<Duplex>();
  server.on('upgrade', (request, duplex, head) => {
    // A connection of this server is always a socket; the type allows other transports.
    const socket = duplex as Socket;
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.on('error', () => undefined);
    const response = new http.ServerResponse(request);
    response.shouldKeepAlive = false;
    try {
      response.assignSocket(socket);
    } catch {
      // The request before it on this connection has no complete answer yet. No well-behaved client does that.
      socket.destroy();
      return;
    }
    response.once('finish', () => socket.destroySoon());
    upgrades.set(request, { socket, head });
    app(request, response);
  });
  return () => {
    for (const socket of open) socket.destroy();
  };
}
