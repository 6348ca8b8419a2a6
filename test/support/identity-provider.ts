import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';

interface Person {
  email: string;
  isVerified?: boolean;
  /** Undefined: the claim is missing. */
  groups: string[] | undefined;
}

/** A certified OpenID provider on this machine, with a login that takes any password. */
export interface IdentityProvider extends AsyncDisposable {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** By their logins. A test changes and removes them. */
  people: Map<string, Person>;
}

/** @param callback the only address that it sends browsers back to */
export async function identityProvider(callback: string): Promise<IdentityProvider> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [clientId, clientSecret] = ['berth', randomBytes(16).toString('hex')];
  const people: IdentityProvider['people'] = new Map();
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [callback],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    findAccount: (_context, id) => {
      const person = people.get(id);
      if (person === undefined) return undefined;
      const { email, isVerified = true, groups } = person;
      return {
        accountId: id,
        claims: () => ({ sub: id, email, email_verified: isVerified, ...(groups && { groups }) }),
      };
    },
    claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'] },
    // As most providers do: what the scopes ask for is in the ID token too.
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true } },
    ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    cookies: { keys: [randomBytes(16).toString('hex')] },
  });
  const serve = provider.callback();
  server.on('request', (request, response) => void serve(request, response));
  return {
    issuer,
    clientId,
    clientSecret,
    people,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
