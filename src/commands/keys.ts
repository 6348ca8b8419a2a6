import { parseArgs } from 'node:util';
import { createKey } from '../access/create-key.ts';
import { systemClock } from '../lib/clock.ts';
import { SCOPES, type Scope } from '../resources/api-key.ts';
import { UsageError, withClient } from './with-client.ts';

function readScopes(text: string | undefined): Scope[] {
  if (text === undefined) return [...SCOPES];
  const scopes = SCOPES.filter((scope) => text.split(',').includes(scope));
  if (scopes.length === text.split(',').length) return scopes;
  throw new UsageError(
    `--scopes ${text} is not valid: write one or more of ${SCOPES.join(', ')}, separated by commas.`,
  );
}

function readExpiry(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const time = Date.parse(text);
  if (Number.isNaN(time) || time < systemClock().now())
    throw new UsageError(
      `--expires ${text} is not valid: write a time in the future, for example 2030-01-31T12:00:00Z.`,
    );
  return new Date(time).toISOString();
}

/**
 * `berth keys create`: creates an APIKey with the rights of the kubeconfig. Returns its token, which is stored nowhere.
 * Throws UsageError and the client's errors.
 */
export async function createKeyCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      namespace: { type: 'string', short: 'n' },
      name: { type: 'string' },
      scopes: { type: 'string' },
      expires: { type: 'string' },
    },
  });
  const scopes = readScopes(values.scopes);
  const expiresAt = readExpiry(values.expires);
  return withClient(env, async (client, { namespace: current }) => {
    const namespace = values.namespace ?? current;
    const key = { namespace, displayName: values.name ?? '', scopes, ...(expiresAt && { expiresAt }) };
    const { token } = await createKey(client, key);
    return `${token}\n`;
  });
}
