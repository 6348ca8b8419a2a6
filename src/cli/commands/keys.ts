import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import type { List, SshKeyRecord } from '../../wire/records.ts';
import { idOfNamed } from '../api/find-named.ts';
import { usageFailure } from '../failure.ts';
import type { Input } from '../options.ts';
import { ownPublicKey } from '../rent/choose.ts';
import { printList } from '../print-list.ts';
import { printJson, type Session } from '../session.ts';
import { age, plain } from '../text.ts';

/** `berth ssh-keys`: the SSH keys that open instances. */
export async function keys(input: Input, session: Session): Promise<void> {
  const answer = await (await session.api()).get<List<SshKeyRecord>>('/ssh-keys');
  await printList(input, session, answer, {
    titles: ['ID', 'NAME', 'TYPE', 'FINGERPRINT', 'AGE'],
    rows: answer.data.map((key) => [
      String(key.id),
      key.name,
      key.type,
      key.fingerprint,
      age(key.created_at, session.now()),
    ]),
    optional: ['TYPE', 'AGE'],
    empty: 'You have no SSH keys here. berth ssh-keys add FILE.pub adds one.',
  });
}

async function publicKey(path: string | undefined, session: Session): Promise<{ path: string; text: string }> {
  if (path === undefined) {
    const own = await ownPublicKey(session.env['HOME'] || homedir());
    if (own !== undefined) return own;
    throw usageFailure(
      'There is no public key in ~/.ssh.',
      'Make one with ssh-keygen -t ed25519, or write berth ssh-keys add FILE.pub.',
    );
  }
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    const said = error instanceof Error ? error.message : String(error);
    throw usageFailure(
      isMissing ? `There is no file ${path}.` : `${said}.`,
      'Write the path of a public key, such as ~/.ssh/id_ed25519.pub.',
    );
  });
  // It would not be taken, but it would have left this machine.
  if (text.includes('PRIVATE KEY'))
    throw usageFailure(`${path} is a private key, and was not sent.`, `Write ${path}.pub.`);
  return { path, text: text.trim() };
}

/** `berth ssh-keys add`: registers a public key. */
export async function addKey(input: Input, session: Session): Promise<void> {
  const { path, text } = await publicKey(input.operands[0], session);
  const name = input.text('name') ?? (text.split(/\s+/)[2] || 'berth');
  const key = await (await session.api()).call<SshKeyRecord>('POST', '/ssh-keys', { body: { name, public_key: text } });
  if (input.flag('json')) return printJson(session, key);
  session.terminal.say(`${path} is registered as ${plain(key.name)}: it opens your instances.`);
  await session.terminal.out(`${key.id}\n`);
}

/** `berth ssh-keys rm`: a key opens nothing any more, and its sessions end. */
export async function removeKey({ operands }: Input, session: Session): Promise<void> {
  const api = await session.api();
  const id = await idOfNamed(api, 'key', operands[0] ?? '');
  await api.call('DELETE', `/ssh-keys/${encodeURIComponent(id)}`);
  session.terminal.say(`The SSH key ${id} opens no instance any more.`);
}
