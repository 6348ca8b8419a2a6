import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Resolves with the address that the server listens on. Rejects when it cannot be used. */
export function listen(server: Server, { host, port }: { host: string; port: number }): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo);
    });
  });
}
