import { createInterface } from 'node:readline/promises';
import type { Progress } from '../lib/progress.ts';
import { checkNodeSupport, type NodeSupport, type NodeTools } from './requirements.ts';
import { installPackages } from '../lib/system-packages.ts';

export interface ConsentOptions {
  /** Install without asking: `--yes`, or CI. */
  yes: boolean;
  /** Someone sits at a terminal and can be asked. */
  interactive: boolean;
  progress: Progress;
}

/** The tools of a real node, or why there is none. */
export type NodeDecision = { tools: NodeTools } | { simulated: string };

/**
 * Decides whether a real node joins. System packages are installed only with consent; without it the way to get them
 * is said and the cluster goes on with simulated nodes.
 */
export async function decideNode(options: ConsentOptions): Promise<NodeDecision> {
  const support = await checkNodeSupport();
  const decision = fromSupport(support);
  if (decision !== undefined || support.kind !== 'installable') return decision ?? { simulated: 'unknown host' };
  const line = support.install.join(' ');
  if (!(options.yes || (options.interactive && (await ask(support.missing, line))))) {
    return { simulated: `missing on this host: ${support.missing.join(', ')}. To run real containers: ${line}` };
  }
  return install(support.install, options.progress);
}

function fromSupport(support: NodeSupport): NodeDecision | undefined {
  if (support.kind === 'ready') return { tools: support.tools };
  if (support.kind === 'impossible') return { simulated: support.reason };
  return undefined;
}

async function ask(missing: readonly string[], line: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const question = `Real containers need ${missing.join(', ')}. Install them with \`${line}\`? [y/N] `;
    return /^y(es)?$/i.test((await terminal.question(question)).trim());
  } finally {
    terminal.close();
  }
}

async function install(command: readonly string[], progress: Progress): Promise<NodeDecision> {
  const failed = await installPackages(command, progress);
  const support = await checkNodeSupport();
  if (support.kind === 'ready') return { tools: support.tools };
  return { simulated: failed ?? `\`${command.join(' ')}\` did not bring what is missing` };
}
