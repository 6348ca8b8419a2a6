import { z } from 'zod';

/** Tokens for this audience work on the dashboard and nowhere else: a stolen one does not open the API server. */
export const AUDIENCE = 'berth';

const claimsSchema = z.object({
  exp: z.number().optional(),
  sub: z.string().optional(),
  aud: z.union([z.string().transform((one) => [one]), z.array(z.string())]).optional(),
});

const SERVICE_ACCOUNT = /^system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})$/;
/** Characters of an error that quote a token's audience. */
const MAX_QUOTED = 200;

/** What a token says about itself; nothing when it is no JWT. Only the cluster knows whether it is true. */
function claimsOf(token: string): z.infer<typeof claimsSchema> {
  const claims = token.split('.')[1] ?? '';
  try {
    return claimsSchema.parse(JSON.parse(Buffer.from(claims, 'base64url').toString('utf8')));
  } catch {
    return {};
  }
}

/** When a token expires, in ms since the epoch; undefined when it does not say. */
export function tokenExpiry(token: string): number | undefined {
  const { exp } = claimsOf(token);
  return exp === undefined ? undefined : exp * 1000;
}

/** Whether the token says that it is for others too, who could use it in place of the user. */
export function isForOthers(token: string): boolean {
  return claimsOf(token).aud?.some((one) => one !== AUDIENCE) ?? false;
}

/** Why a token does not open the dashboard, and the command that creates one that does. */
export function explainRefusal(token: string): string {
  const { aud, sub = '' } = claimsOf(token);
  const [, namespace = 'NAMESPACE', name = 'NAME'] = SERVICE_ACCOUNT.exec(sub) ?? [];
  const command = `kubectl create token ${name} --namespace ${namespace} --audience=${AUDIENCE}`;
  if (aud === undefined || !isForOthers(token)) return `The cluster rejects this token. Create another one: ${command}`;
  const quoted = aud.join(', ').slice(0, MAX_QUOTED);
  return `This token is for ${quoted}. The dashboard takes only a token for ${AUDIENCE} and nothing else, which opens nothing else. Create one: ${command}`;
}
