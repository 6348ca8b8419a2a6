import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { LocalFailure } from '../../lib/failure.ts';
import { lastLines } from '../../lib/shell.ts';
import type { Launcher } from './launcher.ts';

/** Resolves with the reason when one of the components ends by itself. */
export function brokenPromise(launcher: Launcher, logs: string): Promise<LocalFailure> {
  return new Promise((settle) => {
    launcher.onExit((name) => {
      const log = join(logs, `${name}.log`);
      void readFile(log, 'utf8')
        .catch(() => '')
        .then((text) => settle(componentFailure(name, log, text)));
    });
  });
}

function componentFailure(name: string, log: string, text: string): LocalFailure {
  const where = join(basename(dirname(log)), basename(log));
  const remedy = /no space left on device/i.test(text)
    ? 'The disk is full: free some space, and start again.'
    : `Read the lines below, the end of ${where} in the state folder. Then start again.`;
  return new LocalFailure(`${name} ended, so the local cluster is down.`, remedy, lastLines(text, 8));
}
