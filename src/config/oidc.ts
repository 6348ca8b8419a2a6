import { z } from 'zod';

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Tokens and codes pass this way: only this machine may go without TLS. */
export function isPrivate({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || LOOPBACK.test(hostname);
}

const issuer = z.url({ protocol: /^https?$/ }).transform((text, context): URL => {
  const url = new URL(text);
  if (isPrivate(url)) return url;
  context.addIssue({ code: 'custom', message: 'expected an https URL, for example https://id.example.com' });
  return z.NEVER;
});

const claim = z.string().min(1).max(256);

/** The variables of sign-in at an OpenID provider. The claims are read as the API server's flags --oidc-* say. */
export const oidcEnvironment = {
  BERTH_OIDC_ISSUER: issuer.optional(),
  BERTH_OIDC_CLIENT_ID: z.string().min(1).max(256).optional(),
  BERTH_OIDC_CLIENT_SECRET: z.string().min(1).max(4096).optional(),
  BERTH_OIDC_NAME: z.string().min(1).max(64).optional(),
  BERTH_OIDC_SCOPES: z.string().min(1).max(1024).default('openid email profile'),
  BERTH_OIDC_USERNAME_CLAIM: claim.default('sub'),
  BERTH_OIDC_USERNAME_PREFIX: z.string().max(256).optional(),
  BERTH_OIDC_GROUPS_CLAIM: claim.optional(),
  BERTH_OIDC_GROUPS_PREFIX: z.string().max(256).default(''),
};

export interface OidcConfig {
  issuer: URL;
  clientId: string;
  clientSecret: string | undefined;
  publicUrl: URL;
  name: string;
  scopes: string;
  claims: { username: string; usernamePrefix: string; groups: string | undefined; groupsPrefix: string };
}

type Environment = z.infer<z.ZodObject<typeof oidcEnvironment>> & { BERTH_PUBLIC_URL?: URL | undefined };

/** Without a prefix of its own, every claim but email gets the issuer's, as in the API server. A dash means none. */
function usernamePrefix(
  { BERTH_OIDC_USERNAME_PREFIX: prefix, BERTH_OIDC_USERNAME_CLAIM: name }: Environment,
  url: URL,
) {
  if (prefix === '-') return '';
  if (prefix !== undefined) return prefix;
  return name === 'email' ? '' : `${url.href.replace(/\/$/, '')}#`;
}

/** The settings; undefined without an issuer. `fail` gets what is missing. */
export function readOidc(value: Environment, fail: (what: string) => never): OidcConfig | undefined {
  const { BERTH_OIDC_ISSUER: url, BERTH_OIDC_CLIENT_ID: clientId, BERTH_PUBLIC_URL: publicUrl } = value;
  if (url === undefined) return undefined;
  if (clientId === undefined) return fail('BERTH_OIDC_CLIENT_ID: expected the id of the client at BERTH_OIDC_ISSUER');
  if (publicUrl === undefined || !isPrivate(publicUrl)) {
    return fail('BERTH_PUBLIC_URL: expected where people reach Berth, by https, for example https://gpu.example.com');
  }
  return {
    issuer: url,
    clientId,
    clientSecret: value.BERTH_OIDC_CLIENT_SECRET,
    publicUrl,
    name: value.BERTH_OIDC_NAME ?? url.host,
    scopes: value.BERTH_OIDC_SCOPES,
    claims: {
      username: value.BERTH_OIDC_USERNAME_CLAIM,
      usernamePrefix: usernamePrefix(value, url),
      groups: value.BERTH_OIDC_GROUPS_CLAIM,
      groupsPrefix: value.BERTH_OIDC_GROUPS_PREFIX,
    },
  };
}
