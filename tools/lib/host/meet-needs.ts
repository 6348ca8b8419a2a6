import { type Host, installCommand } from './host.ts';
import type { RequirementName } from './requirements.ts';

export interface Consent {
  /** Install without a question: `--yes`, or CI. */
  yes: boolean;
  /** Whether there is a terminal to ask at. */
  interactive: boolean;
}

export interface Needs extends Consent {
  host: Host;
  names: readonly RequirementName[];
  /** Subject and verb of the question: `Real containers need`. */
  subject: string;
}

/** What is still missing. */
export interface Shortage {
  missing: readonly RequirementName[];
  /** The command that installs it, to be run as root; undefined where there is no package manager that we know. */
  install: string | undefined;
  /** Why an installation failed; undefined where none was tried. */
  failed: string | undefined;
}

/** Reads the consent of a script: `--yes` among its arguments, CI=true in the environment, or a terminal to ask at. */
export function consentOf(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Consent {
  return {
    yes: args.includes('--yes') || env['CI'] === 'true',
    interactive: process.stdin.isTTY && process.stderr.isTTY,
  };
}

/**
 * Installs what is missing, with consent: `yes`, or the answer to a question at the terminal. Without consent, root or a
 * package manager it installs nothing. Returns what is missing after that; undefined when nothing is.
 */
export async function meetNeeds({ host, names, subject, yes, interactive }: Needs): Promise<Shortage | undefined> {
  const missing = await missingOf(host, names);
  if (missing.length === 0) return undefined;
  const manager = await host.packageManager();
  if (manager === undefined) return { missing, install: undefined, failed: undefined };
  const command = installCommand(manager, missing);
  const install = command.join(' ');
  const question = `${subject} ${missing.join(', ')}. Install ${missing.length === 1 ? 'it' : 'them'} with \`${install}\`?`;
  const agreed = host.isRoot && (yes || (interactive && (await host.ask(question))));
  if (!agreed) return { missing, install, failed: undefined };
  const failed = await host.install(command);
  const left = await missingOf(host, missing);
  if (left.length === 0) return undefined;
  return { missing: left, install, failed: failed ?? `\`${install}\` did not bring ${left.join(', ')}` };
}

/** Those of the requirements that the machine lacks. */
export async function missingOf(host: Host, names: readonly RequirementName[]): Promise<RequirementName[]> {
  const present = await Promise.all(names.map((name) => host.has(name)));
  return names.filter((_, index) => present[index] !== true);
}
