import { ssh2 } from '../../src/ssh/ssh2/load.ts';

/** Runs `true` by SSH. Returns what was said on stderr; undefined when the login fails. */
export async function sshTrue(login: {
  port: number;
  username: string;
  privateKey: string;
}): Promise<string | undefined> {
  const client = new ssh2.Client();
  try {
    return await new Promise<string | undefined>((resolve) => {
      client.on('error', () => resolve(undefined));
      client.on('ready', () =>
        client.exec('true', (error, channel) => {
          if (error !== undefined) {
            resolve(undefined);
            return;
          }
          let said = '';
          channel.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
          channel.on('close', () => resolve(said)).resume();
        }),
      );
      client.connect({ host: '127.0.0.1', ...login });
    });
  } finally {
    client.end();
  }
}
