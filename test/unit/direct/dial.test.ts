import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { expect, it } from 'vitest';
import { dialTls } from '../../../src/direct/dial.ts';
import { DirectLink } from '../../../src/direct/direct-link.ts';
import { FROM_POD, headerOf } from '../../../src/direct/frames.ts';
import { PIECE_BYTES, type Turn } from '../../../src/lib/byte-turns.ts';
import { FairBytes } from '../../../src/lib/shares.ts';
import { createAuthority, issue } from '../../../tools/lib/x509.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';

const FRAMES = 200;
const FRAME_BYTES = 1024;

it('a link by TLS is read at the turn of its tenant, and what it says counts by bytes and pieces', async () => {
  const { key, certificate } = await issue(await createAuthority('test'), { commonName: 'pod', hosts: ['127.0.0.1'] });
  const server = createServer({ key, cert: certificate }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const connected = once(server, 'secureConnection') as Promise<[TLSSocket]>;
  const to = { host: '127.0.0.1', port, certificate: new X509Certificate(certificate).raw };
  const wire = await dialTls(to, AbortSignal.timeout(10_000));
  const [pod] = await connected;

  const held: (() => void)[] = [];
  let counted = 0;
  const turn: Turn = {
    pass: (bytes, goOn) => {
      counted += bytes;
      held.push(goOn);
    },
    count: (bytes) => (counted += bytes),
  };
  const link = new DirectLink(wire, fakeClock(), { portion: new FairBytes(0).of('team'), turn });
  const channel = link.open({ port: 7000 });
  let read = 0;
  channel.stdout.on('data', (bytes: Buffer) => (read += bytes.length));
  pod.resume();
  for (let count = 0; count < FRAMES; count += 1)
    pod.write(Buffer.concat([headerOf(FROM_POD.stdout, 1, FRAME_BYTES), Buffer.alloc(FRAME_BYTES)]));
  await waitFor('the first bytes', () => read > 0);
  for (let count = 0; count < 20; count += 1) await settle();
  // What was decrypted at once.
  expect(read).toBeLessThanOrEqual(64 * 1024);
  await waitFor('the rest', () => {
    held.shift()?.();
    return read === FRAMES * FRAME_BYTES;
  });
  expect(counted).toBeGreaterThan(FRAMES * FRAME_BYTES + 2 * PIECE_BYTES);
  link.close();
  pod.destroy();
  server.close();
});
