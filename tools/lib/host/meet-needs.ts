import { type Host, installCommand } from './host.ts';
import type { RequirementName } from './requirements.ts';

export interface Consent {
  /** Install without a question: `--yes`, or CI. */
  yes: boolean;
  /** Somebody sits at a terminal and can be asked. */
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

/** Gives a process consent by its arguments and the environment. */
export function consentOf(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Consent {
  return {
    yes: args.includes('--yes') || env['CI'] === 'true',
    interactive: process.stdin.isTTY && process.stderr.isTTY,
  };
}

/**
 * Installs what is missing, with consent: given by `yes`, or asked for at a terminal. Needs root and a package manager;
 * where one of them or the consent is not there, it installs nothing. Returns what is missing after that, or undefined.
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
