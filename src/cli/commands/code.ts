import { findInstance } from '../api/find-instance.ts';
import type { InstanceRecord } from '../../wire/records.ts';
import { openUrl } from '../browser.ts';
import { CliFailure, usageFailure } from '../failure.ts';
import type { Input } from '../options.ts';
import type { Session } from '../session.ts';
import { plain } from '../text.ts';
import { hostsOf, loginOf, runProgram, writeConfig } from './ssh.ts';

/** The programs of the editors that read entries of ~/.ssh/config, and the addresses that open them. */
const EDITORS: Readonly<Record<string, string>> = { code: 'vscode', cursor: 'cursor' };

/** `berth code`: opens a folder of an instance in VS Code, or an editor that is made from it. */
export async function code(input: Input, session: Session): Promise<void> {
  const [wanted = '', folder = '/workspace'] = input.operands;
  if (!folder.startsWith('/'))
    throw usageFailure(`${folder} is no path in the instance: write one that begins with /.`);
  await openFolder(await findInstance(await session.api(), wanted), folder, input, session);
}

/** Opens a folder in the editor that --editor names. */
export async function openFolder(
  record: InstanceRecord,
  folder: string,
  input: Input,
  session: Session,
): Promise<void> {
  const { terminal } = session;
  loginOf(record);
  const [host] = hostsOf(record);
  if (host === undefined)
    throw new CliFailure(`ssh cannot name an instance ${plain(record.id)}.`, {
      next: 'Tell the operator of the server.',
    });
  await writeConfig(input, session);
  const editor = input.text('editor') ?? 'code';
  const url = `${EDITORS[editor] ?? 'vscode'}://vscode-remote/ssh-remote+${host}${encodeURI(folder)}`;
  if (input.flag('url')) return terminal.out(`${url}\n`);
  try {
    const status = await runProgram(session, editor, ['--remote', `ssh-remote+${host}`, folder]);
    if (status === 0) return;
  } catch {
    // Not on the PATH, as on a Mac where it was never put there: the system knows it by its addresses.
  }
  if (terminal.interactive && (await openUrl(url))) return terminal.say(`Opened ${url}`);
  await terminal.out(`${url}\n`);
}
