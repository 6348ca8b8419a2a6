import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { readStrings, wireString } from '../../src/lib/ssh-strings.ts';
import type { SoftwareKey } from './security-key.ts';

const [FAILURE, LIST, KEYS, SIGN, SIGNATURE] = [5, 11, 12, 13, 14];

function answerTo(request: Buffer, key: SoftwareKey): Buffer {
  if (request[0] === LIST) {
    return Buffer.concat([Buffer.of(KEYS, 0, 0, 0, 1), wireString(key.blob), wireString('software')]);
  }
  const data = request[0] === SIGN ? readStrings(request.subarray(1), 2)?.strings[1] : undefined;
  return data === undefined ? Buffer.of(FAILURE) : Buffer.concat([Buffer.of(SIGNATURE), wireString(key.sign(data))]);
}

/** An ssh-agent on a Unix socket, with one key (draft-miller-ssh-agent). Returns what ends it. */
export async function sshAgent(path: string, key: SoftwareKey): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    let waiting = Buffer.alloc(0);
    socket.on('data', (bytes: Buffer) => {
      waiting = Buffer.concat([waiting, bytes]);
      for (let read = readStrings(waiting, 1); read !== undefined; read = readStrings(waiting, 1)) {
        waiting = Buffer.from(read.rest);
        socket.write(wireString(answerTo(read.strings[0] ?? Buffer.alloc(0), key)));
      }
    });
  });
  server.listen(path);
  await once(server, 'listening');
  return async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  };
}
