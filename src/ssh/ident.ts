import type { Socket } from 'node:net';

const PATIENCE_MS = 300;

/** Whether a client that began with these bytes is OpenSSH. */
export function isOpenSsh(first: Buffer): boolean {
  return first.subarray(0, 16).toString('latin1') === 'SSH-2.0-OpenSSH_';
}

/** A client's first bytes, put back for the next reader; empty when it waits for the server (RFC 4253 section 4.2). */
export function awaitIdent(socket: Socket): Promise<Buffer> {
  return new Promise((resolve) => {
    const finish = (first: Buffer): void => {
      clearTimeout(timer);
      socket.off('data', onData);
      socket.off('close', onClose);
      socket.pause();
      if (first.length > 0) socket.unshift(first);
      resolve(first);
    };
    const onData = (first: Buffer): void => finish(first);
    const onClose = (): void => finish(Buffer.alloc(0));
    const timer = setTimeout(onClose, PATIENCE_MS);
    socket.on('data', onData);
    socket.once('close', onClose);
  });
}
