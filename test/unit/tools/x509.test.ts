import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { createAuthority, issue } from '../../../tools/lib/x509.ts';

const authority = await createAuthority('test-authority');

describe('certificates', () => {
  it('are signed by their authority and carry names, addresses and groups', async () => {
    const leaf = await issue(authority, {
      commonName: 'leaf',
      organisation: 'system:masters',
      hosts: ['localhost', '10.1.2.3'],
    });
    const certificate = new X509Certificate(leaf.certificate);
    const root = new X509Certificate(authority.certificate);
    expect(certificate.verify(root.publicKey)).toBe(true);
    expect(certificate.checkIssued(root)).toBe(true);
    expect(root.ca).toBe(true);
    expect(certificate.ca).toBe(false);
    expect(certificate.subject).toBe('O=system:masters\nCN=leaf');
    expect(certificate.subjectAltName).toBe('DNS:localhost, IP Address:10.1.2.3');
    expect(certificate.validToDate.getTime()).toBeGreaterThan(Date.now() + 300 * 86_400_000);
  });

  it('are accepted in a handshake that asks both sides, and only under their own authority', async () => {
    const server = await issue(authority, { commonName: 'server', hosts: ['127.0.0.1'] });
    const client = await issue(authority, { commonName: 'client' });
    const listener = createServer(
      {
        cert: server.certificate,
        key: server.key,
        ca: authority.certificate,
        requestCert: true,
        rejectUnauthorized: true,
      },
      (socket) => socket.end(String(socket.getPeerCertificate().subject.CN)),
    );
    listener.on('tlsClientError', () => undefined).listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    const target = { host: '127.0.0.1', port, cert: client.certificate, key: client.key };
    try {
      const socket = connect({ ...target, ca: authority.certificate });
      const [data] = (await once(socket, 'data')) as [Buffer];
      expect(data.toString()).toBe('client');
      const stranger = connect({ ...target, ca: (await createAuthority('test-authority')).certificate });
      const [error] = (await once(stranger, 'error')) as [NodeJS.ErrnoException];
      expect(error.code).toMatch(/CERT|SIGNATURE/);
    } finally {
      listener.close();
    }
  });
});
