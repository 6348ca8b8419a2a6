import { readFileSync } from 'node:fs';

/** The version of the nearest package.json, which is that of the package that this file came in. */
export function ownVersion(): string {
  for (const path of ['./package.json', '../package.json', '../../package.json']) {
    try {
      const { version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as { version?: string };
      return version ?? 'unknown';
    } catch {
      continue;
    }
  }
  return 'unknown';
}
