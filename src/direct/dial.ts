import { X509Certificate } from 'node:crypto';
import type { OnReadOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, type ConnectionOptions } from 'node:tls';

/** Where a helper listens, and the certificate that it made for this one connection. */
export interface DirectAddress {
  host: string;
  port: number;
  /** DER. */
  certificate: Buffer;
}

/** A connection to a helper. Its bytes come by `onBytes`, and not as events of the socket. */
export interface Wire {
  socket: Duplex;
  /** Calls back with bytes that are good until it returns. */
  onBytes: (listener: (bytes: Buffer) => void) => void;
}

/** Connects to a helper. Rejects when it is not reached, or another one answers. */
export type Dial = (to: DirectAddress, signal: AbortSignal) => Promise<Wire>;

// A pod answers within a few milliseconds, unless a policy drops the packets or no route leads there. The user waits
// for this.
const CONNECT_TIMEOUT_MS = 500;
const HANDSHAKE_TIMEOUT_MS = 5_000;
const KEEPALIVE_MS = 15_000;
/** Bytes of a record of TLS. */
const RECORD_BYTES = 16 * 1024;

/** By TLS 1.3, with that certificate and no other. */
export const dialTls: Dial = async ({ host, port, certificate }, signal) => {
  const pinned = new X509Certificate(certificate);
  let listener = (_bytes: Buffer): void => undefined;
  // One buffer for all bytes: a new one for each 16 KiB costs more than their decryption.
  const onread: OnReadOpts = {
    buffer: Buffer.allocUnsafe(RECORD_BYTES),
    callback: (count, { buffer, byteOffset }) => {
      listener(Buffer.from(buffer as ArrayBuffer, byteOffset, count));
      return true;
    },
  };
  // Node's types leave `onread` out here.
  const reading: { onread: OnReadOpts } & ConnectionOptions = { host, port, onread };
  return await new Promise((resolve, reject) => {
    const socket = connect({
      ...reading,
      ca: [pinned.toString()],
      allowPartialTrustChain: true,
      minVersion: 'TLSv1.3',
      checkServerIdentity: (_host, given) =>
        given.raw.equals(pinned.raw) ? undefined : new Error('The certificate is another one.'),
    });
    const fail = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    const late = (): void => fail(new Error(`${host} does not answer.`));
    let timer = setTimeout(late, CONNECT_TIMEOUT_MS);
    const abort = (): void => fail(new Error('The client is gone.'));
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    };
    signal.addEventListener('abort', abort, { once: true });
    socket.setNoDelay(true).setKeepAlive(true, KEEPALIVE_MS);
    socket.once('connect', () => {
      clearTimeout(timer);
      timer = setTimeout(late, HANDSHAKE_TIMEOUT_MS);
    });
    socket.on('error', fail);
    socket.once('close', () => fail(new Error(`${host} closed the connection.`)));
    const onBytes: Wire['onBytes'] = (next) => (listener = next);
    socket.once('secureConnect', () => resolve({ socket, onBytes }));
    socket.once('secureConnect', settle);
    socket.once('close', settle);
    if (signal.aborted) abort();
  });
};
