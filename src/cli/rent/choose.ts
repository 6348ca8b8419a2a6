import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Api } from '../api/client.ts';
import type { FoundOffer, List, SshKeyRecord } from '../../wire/records.ts';
import { offerTable } from '../commands/offers.ts';
import { CliFailure } from '../failure.ts';
import type { Session } from '../session.ts';
import { plain } from '../text.ts';
import { hasName } from './search.ts';

/** Offers that a person compares at once. */
const SHOWN = 20;
const NOTHING_RENTED = new CliFailure('Nothing was rented.');

/** Asks a person for one of the free offers: a filter by name, then a number. */
export async function chooseOffer(
  session: Session,
  free: readonly FoundOffer[],
  interruptible: boolean,
): Promise<FoundOffer> {
  const { terminal } = session;
  const view = { interruptible, numbered: true, width: terminal.columns.say };
  let shown = free;
  for (let isNew = true; ;) {
    if (isNew) terminal.say(offerTable(shown.slice(0, SHOWN), view).trimEnd());
    if (isNew && shown.length > SHOWN)
      terminal.say(`${shown.length - SHOWN} more: write words of a name to see fewer.`);
    const answer = (await terminal.ask('Number of an offer, words of a GPU name, or q to end [1]: ')).trim();
    if (answer === 'q') throw NOTHING_RENTED;
    const chosen = shown[Number(answer || '1') - 1];
    if (chosen !== undefined) return chosen;
    const named = free.filter((offer) => hasName(offer, answer));
    isNew = named.length > 0;
    if (isNew) shown = named;
    else terminal.say(`No free offer is called ${plain(answer)}: write a number of the list, or words of a name.`);
  }
}

const PUBLIC_KEYS = ['id_ed25519.pub', 'id_ecdsa.pub', 'id_ed25519_sk.pub', 'id_rsa.pub'];

/** The first public key of ~/.ssh, and where it is. */
export async function ownPublicKey(home: string): Promise<{ path: string; text: string } | undefined> {
  for (const name of PUBLIC_KEYS) {
    const path = join(home, '.ssh', name);
    const text = await readFile(path, 'utf8').catch(() => undefined);
    if (text !== undefined) return { path, text: text.trim() };
  }
  return undefined;
}

/** Before a rental: offers to register a key where none would open the instance. */
export async function offerKey(api: Api, session: Session): Promise<void> {
  const { env, terminal } = session;
  // Else the record says it in its warnings.
  if (!terminal.interactive) return;
  if ((await api.get<List<SshKeyRecord>>('/ssh-keys')).data.length > 0) return;
  const own = await ownPublicKey(env['HOME'] || homedir());
  const missing = 'You have no SSH key here, so nobody can log in yet.';
  if (own === undefined) return terminal.say(`Warning: ${missing} Add one at any time: berth ssh-keys add FILE.pub`);
  const answer = (await terminal.ask(`${missing} Register ${own.path}? [Y/n] `)).trim();
  if (/^n/i.test(answer)) return;
  const name = own.text.split(' ')[2] || 'berth';
  await api.call('POST', '/ssh-keys', { body: { name, public_key: own.text } });
}
