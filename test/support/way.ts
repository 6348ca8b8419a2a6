import { connect, createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';

/** An address of this machine. EndpointSlices take none of the loopback. */
export function ownAddress(): string {
  const found = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal);
  if (found === undefined) throw new Error('This machine has no address beside the loopback.');
  return found.address;
}

/** Leads from there, or another address, to a port of the loopback; from a free port, unless one is given. */
export async function openWay(port: number, from = 0, address = ownAddress()): Promise<Server> {
  const server = createServer((socket) => {
    const onward = connect(port, '127.0.0.1');
    socket.pipe(onward).pipe(socket);
    socket.on('error', () => onward.destroy());
    onward.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(from, address, resolve);
  });
  return server;
}
