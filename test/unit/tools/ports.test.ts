import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { freePorts, requirePort } from '../../../tools/lib/free-ports.ts';

describe('ports', () => {
  it('finds different free ones', async () => {
    const ports = await freePorts(5);
    expect(new Set(ports).size).toBe(5);
    for (const port of ports) await requirePort(port, 'a test');
  });

  it('finds none that a kernel gives to connections or Kubernetes to Services', async () => {
    for (const port of await freePorts(50)) {
      expect(port).toBeGreaterThanOrEqual(20_000);
      expect(port).toBeLessThan(30_000);
    }
  });

  it('gives none again soon: whom it was given to may not use it yet', async () => {
    const ports: number[] = [];
    for (let n = 0; n < 150; n += 1) ports.push(...(await freePorts(1)));
    expect(new Set(ports).size).toBe(150);
  });

  it('says which port is in use, and for what it was wanted', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      await expect(requirePort(port, 'HTTP')).rejects.toMatchObject({
        name: 'LocalFailure',
        message: `Port ${port} for HTTP is in use.`,
      });
    } finally {
      server.close();
    }
  });
});
