import { ssh2 } from '../../src/ssh/ssh2/load.ts';

interface Login {
  port: number;
  username: string;
  privateKey: string;
}

/** Runs a command by SSH. Returns what it printed; undefined when the login fails. */
export async function sshRun(login: Login, command: string): Promise<{ stdout: string; stderr: string } | undefined> {
  const client = new ssh2.Client();
  try {
    return await new Promise((resolve) => {
      client.on('error', () => resolve(undefined));
      client.on('ready', () =>
        client.exec(command, (error, channel) => {
          if (error !== undefined) {
            resolve(undefined);
            return;
          }
          const said = { stdout: '', stderr: '' };
          channel.setEncoding('utf8').on('data', (text: string) => (said.stdout += text));
          channel.stderr.setEncoding('utf8').on('data', (text: string) => (said.stderr += text));
          channel.on('close', () => resolve(said));
        }),
      );
      client.connect({ host: '127.0.0.1', ...login });
    });
  } finally {
    client.end();
  }
}

/** Runs `true` by SSH. Returns what was said on stderr; undefined when the login fails. */
export async function sshTrue(login: Login): Promise<string | undefined> {
  return (await sshRun(login, 'true'))?.stderr;
}
