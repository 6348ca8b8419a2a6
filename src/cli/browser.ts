import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { CliFailure } from './failure.ts';
import { withoutKey } from './settings.ts';

/** The program that opens an address, by system. None of them is a shell, which would read the address as words. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** Opens an address with the program that the person chose for it. False where there is none. */
export async function openUrl(url: string): Promise<boolean> {
  if (!/^(?:https?|vscode|cursor):$/.test(new URL(url).protocol))
    throw new CliFailure('The server names an address that is no page.', { next: 'Tell the operator of the server.' });
  const [program = 'xdg-open', ...words] = OPENERS[process.platform] ?? [];
  const child = spawn(program, [...words, url], { stdio: 'ignore', detached: true, env: withoutKey(process.env) });
  child.unref();
  return await once(child, 'spawn').then(
    () => true,
    () => false,
  );
}
