import { LocalFailure } from '../failure.ts';
import { findProgram, run } from '../shell.ts';

/** The oldest Go that fetches the toolchain that a go.mod asks for. */
export const OLDEST_GO = '1.21';

export const INSTALL_GO = `Install Go ${OLDEST_GO} or newer from https://go.dev/dl.`;

/** What this machine has of Go. */
export interface FoundGo {
  path: string | undefined;
  /** Whether it is new enough. */
  usable: boolean;
  /** Its version, or why it cannot be used. */
  detail: string;
}

export async function lookForGo(): Promise<FoundGo> {
  const path = await findProgram('go', ['/usr/local/go/bin']);
  return { path, ...judgeGo(path === undefined ? undefined : (await run(path, ['version'])).stdout) };
}

/** The path of a Go that builds our programs. Throws LocalFailure. */
export async function requireGo(): Promise<string> {
  const { path, usable, detail } = await lookForGo();
  if (path === undefined || !usable) throw new LocalFailure(`A Go program must be built, and ${detail}.`, INSTALL_GO);
  return path;
}

/** Reads what `go version` printed; undefined stands for no Go at all. */
export function judgeGo(output: string | undefined): Omit<FoundGo, 'path'> {
  if (output === undefined) return { usable: false, detail: 'Go is not installed' };
  const match = /go(\d+)\.(\d+)/.exec(output);
  if (match === null) return { usable: false, detail: `\`go version\` says "${output.trim()}"` };
  const [, major, minor] = match;
  const usable = Number(major) > 1 || Number(minor) >= 21;
  return { usable, detail: usable ? match[0] : `${match[0]} is too old, ${OLDEST_GO} or newer is needed` };
}
