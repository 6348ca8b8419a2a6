import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { OidcProvider } from '../../../src/web/oidc-provider.ts';
import { systemClock } from '../../../src/lib/clock.ts';

const FLOW = { state: 'state', nonce: 'nonce', verifier: 'v'.repeat(43) };
const CLAIMS = { username: 'sub', usernamePrefix: 'oidc:', groups: undefined, groupsPrefix: '' };

const key = () => generateKeyPairSync('rsa', { modulusLength: 2048 });
const own = key();
const foreign = key();

let server: Server;
let issuer: string;
/** What signs the next ID token, and under which name. */
let signer: { privateKey: KeyObject; kid: string };

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function idToken(): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer, sub: 'ann', aud: 'berth', nonce: FLOW.nonce, iat: now, exp: now + 60 };
  const signed = `${part({ alg: 'RS256', kid: signer.kid })}.${part(claims)}`;
  return `${signed}.${sign('sha256', Buffer.from(signed), signer.privateKey).toString('base64url')}`;
}

beforeEach(async () => {
  signer = { privateKey: own.privateKey, kid: 'own' };
  server = createServer((request, response) => {
    const answers: Record<string, () => object> = {
      '/.well-known/openid-configuration': () => ({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
      }),
      '/jwks': () => ({ keys: [{ ...own.publicKey.export({ format: 'jwk' }), kid: 'own', use: 'sig', alg: 'RS256' }] }),
      '/token': () => ({ access_token: 'a', token_type: 'Bearer', expires_in: 60, id_token: idToken() }),
    };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answers[request.url ?? '']?.() ?? {}));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

function finish() {
  const settings = { clientId: 'berth', clientSecret: 'secret', name: 'id', scopes: 'openid', claims: CLAIMS };
  const publicUrl = new URL('http://localhost');
  const provider = new OidcProvider({ ...settings, issuer: new URL(issuer), publicUrl }, systemClock());
  return provider.finish(`?code=c&state=${FLOW.state}`, FLOW);
}

it('takes an ID token that the provider signed', async () => {
  expect(await finish()).toMatchObject({ subject: 'ann', user: { username: 'oidc:ann' } });
});

it.each(['own', 'other'])('takes none that somebody else signed, by the name of the key %s', async (kid) => {
  signer = { privateKey: foreign.privateKey, kid };
  await expect(finish()).rejects.toThrow();
});
