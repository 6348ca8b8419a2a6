import { nodeObstacle } from '../cluster/decide-node.ts';
import { LocalFailure } from '../lib/failure.ts';
import type { Host } from '../lib/host/host.ts';
import { type Consent, meetNeeds, type Shortage } from '../lib/host/meet-needs.ts';
import { requirementOf } from '../lib/host/requirements.ts';
import { type Program, SCRIPT_NEEDS } from './needs.ts';

export interface PrepareOptions extends Consent {
  host: Host;
  /** Throws LocalFailure where this machine has no way to a cluster. */
  requireCluster(): Promise<void>;
}

/**
 * Meets the needs of an npm script: installs the packages that are missing, with consent. Throws a LocalFailure that
 * says what is missing, what it is for, and how to get it. A script that can skip tests needs no package.
 */
export async function prepareScript(script: string, options: PrepareOptions): Promise<void> {
  const needs = SCRIPT_NEEDS[script];
  if (needs === undefined) throw new Error(`tools/scripts/needs.ts has no script ${script}.`);
  const { host } = options;
  if (needs.cluster) await requireCluster(script, options);
  const obstacle = needs.realNode ? nodeObstacle(host) : undefined;
  const programs = await missingPrograms(needs.programs ?? [], host);
  const subject = needs.skips ? 'Some tests need' : `\`${commandOf(script)}\` needs`;
  // A script that cannot run after it gets nothing installed.
  const blocked = obstacle !== undefined || programs.length > 0;
  const consent = blocked ? { yes: false, interactive: false } : options;
  const shortage = await meetNeeds({ ...options, ...consent, names: needs.packages, subject });
  if (needs.skips) requireInstalled(shortage);
  else if (blocked || shortage !== undefined) throw failureOf(script, { host, obstacle, programs, shortage });
}

/** What a person types to run the script. */
export function commandOf(script: string): string {
  return script === 'test' ? 'npm test' : `npm run ${script}`;
}

async function requireCluster(script: string, options: PrepareOptions): Promise<void> {
  try {
    await options.requireCluster();
  } catch (error) {
    if (script !== 'test' || !(error instanceof LocalFailure)) throw error;
    const unit = 'The unit tests run without a cluster: npm test -- --project "unit*"';
    throw new LocalFailure(error.message, `${error.remedy} ${unit}`, error.details);
  }
}

async function missingPrograms(programs: readonly Program[], host: Host): Promise<Program[]> {
  const present = await Promise.all(programs.map(({ name }) => host.hasProgram(name)));
  return programs.filter((_, index) => present[index] !== true);
}

/** Consent was given and did not help: a run that skips tests all the same would hide that. */
function requireInstalled(shortage: Shortage | undefined): void {
  if (shortage?.failed === undefined) return;
  throw new LocalFailure(
    `Packages that tests need cannot be installed: ${shortage.failed}`,
    'Install them by hand, or run without --yes and without CI=true: then the tests that need them are skipped.',
  );
}

interface Missing {
  host: Host;
  obstacle: string | undefined;
  programs: readonly Program[];
  shortage: Shortage | undefined;
}

function failureOf(script: string, { host, obstacle, programs, shortage }: Missing): LocalFailure {
  const packages = shortage?.missing ?? [];
  const names = [...programs.map(({ name }) => name), ...packages];
  const lack = names.length === 0 ? [] : [`this machine lacks ${names.join(', ')}`];
  const reasons = [...(obstacle === undefined ? [] : [obstacle]), ...lack];
  const details = [
    ...programs.map(({ name, use }) => `${name} ${use}`),
    ...packages.map((name) => `${name} ${requirementOf(name).use}`),
    ...(shortage?.failed === undefined ? [] : [shortage.failed]),
  ];
  const remedies = [...programs.map(({ remedy }) => remedy), remedyOf(script, host, shortage)];
  return new LocalFailure(
    `\`${commandOf(script)}\` cannot run: ${reasons.join(', and ')}.`,
    remedies.join(' '),
    details,
  );
}

function remedyOf(script: string, { platform, isRoot }: Host, shortage: Shortage | undefined): string {
  const command = `${isRoot ? '' : 'sudo '}${commandOf(script)}`;
  if (platform !== 'linux') return `Run it on Linux, as root: ${commandOf(script)}`;
  if (shortage === undefined) return `Then run: ${command}`;
  if (shortage.install === undefined) return `Install ${shortage.missing.join(', ')} by hand. Then run: ${command}`;
  if (shortage.failed !== undefined) return `Fix what the last line says. Then run: ${command} -- --yes`;
  return `This installs the packages and runs it: ${command} -- --yes`;
}
