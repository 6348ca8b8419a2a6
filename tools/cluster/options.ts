import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';
import { LocalFailure } from '../lib/failure.ts';

/** Options of `npm run up` and `npm start`. */
export interface LocalOptions {
  kubeconfig: string | undefined;
  context: string | undefined;
  /** Whether an option or the environment names a cluster. */
  given: boolean;
  /** Whether to start programs of its own also where kind is there. */
  built: boolean;
  /** Whether a DRA driver gives the GPUs of the real node. */
  dra: boolean;
  yes: boolean;
  detach: boolean;
  /** Whether to run the server too. */
  server: boolean;
  httpPort: number | undefined;
  sshPort: number | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the options of a local command. `ownKubeconfig` is the file that this checkout writes. The tour puts it first in
 * KUBECONFIG, so there it does not name a given cluster. Throws LocalFailure.
 */
export function readOptions(args: readonly string[], env: Environment, ownKubeconfig: string): LocalOptions {
  const values = parse(args);
  const paths = (env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  const fromTour = paths[0] === ownKubeconfig;
  const fromEnv = (fromTour ? paths.slice(1) : paths).join(delimiter) || undefined;
  const named = values.kubeconfig !== undefined || values.context !== undefined;
  if (values.built === true && named) {
    throw new LocalFailure('--built starts a cluster, and --kubeconfig and --context name one.', 'Give one of them.');
  }
  const httpPort = portOf('--port', values.port);
  const sshPort = portOf('--ssh-port', values['ssh-port']);
  if (httpPort !== undefined && httpPort === sshPort) {
    throw new LocalFailure(`--port and --ssh-port are both ${httpPort}.`, 'Give two different ports.');
  }
  return {
    kubeconfig: values.kubeconfig ?? fromEnv,
    context: values.context,
    given: named || (values.built !== true && !fromTour && paths.length > 0),
    built: values.built === true,
    dra: values.dra === true,
    yes: values.yes === true || env['CI'] === 'true',
    detach: values.detach === true,
    server: values['no-server'] !== true,
    httpPort,
    sshPort,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        kubeconfig: { type: 'string' },
        context: { type: 'string' },
        built: { type: 'boolean' },
        dra: { type: 'boolean' },
        yes: { type: 'boolean' },
        detach: { type: 'boolean' },
        'no-server': { type: 'boolean' },
        port: { type: 'string' },
        'ssh-port': { type: 'string' },
      },
    }).values;
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    throw new LocalFailure(
      cause,
      'Known options: --kubeconfig FILE, --context NAME, --built, --dra, --yes, --detach, --port N, --ssh-port N, --help.',
    );
  }
}

function portOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new LocalFailure(`${option} ${text} is not a port.`, 'Give a number from 1 to 65535.');
}

/** The kubeconfig that kubectl would use. */
export function defaultKubeconfig(env: Environment): string {
  return env['KUBECONFIG'] || join(env['HOME'] ?? homedir(), '.kube', 'config');
}
