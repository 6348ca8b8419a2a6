import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { ROOT } from '../../tools/lib/paths.ts';
import { run } from '../../tools/lib/shell.ts';
import { ALERTS } from './alert-rules.ts';

const SECTIONS = new Map(
  readFileSync(join(ROOT, 'docs/run/runbooks.md'), 'utf8')
    .split(/^## /m)
    .map((section) => [section.split('\n', 1)[0] ?? '', section]),
);

/** What stands in a runbook for a name of the cluster. */
type Names = Readonly<Partial<Record<'NODE' | 'TENANT' | 'NAME' | 'POD' | 'HOST' | 'PORT' | 'https://HOST', string>>>;

function sectionOf(alert: string): string {
  const section = SECTIONS.get(alert);
  if (section === undefined) throw new Error(`There is no runbook for ${alert}.`);
  return section;
}

/** The other alerts that the runbook of an alert leads to. They may fire with it. */
export function namedBy(alert: string): string[] {
  return ALERTS.map((rule) => rule.alert).filter((name) => name !== alert && sectionOf(alert).includes(`[${name}]`));
}

export interface RunbookShellOptions {
  kubeconfig: string;
  /** The folder of kubectl; undefined where it is on the PATH. */
  programs: string | undefined;
  /** Stands for `berth-system`. */
  namespace: string;
  /** What the pods with this label would have logged. */
  logOf: (label: string) => string;
  /** Changes the times in a query as those in the rules were changed. */
  faster: (text: string) => string;
  /** Variables that runbooks use. */
  env: Readonly<Partial<Record<'PROM' | 'BERTH_URL' | 'BERTH_API_KEY', string>>>;
}

/** Does what runbooks say, in a shell. The processes of the test have no pods, so their logs are read from files. */
export class RunbookShell {
  readonly #options: RunbookShellOptions;

  constructor(options: RunbookShellOptions) {
    this.#options = options;
  }

  /** Does everything under Look, line by line. Returns what was printed. Throws when a command finds nothing or fails. */
  async look(alert: string, names: Names = {}): Promise<string> {
    const [, block = ''] = /\*\*Look\.\*\*.*?^```sh\n(.*?)^```/ms.exec(sectionOf(alert)) ?? [];
    const printed: string[] = [];
    for (const line of block.trim().split('\n')) printed.push(await this.#run(line, names));
    return printed.join('');
  }

  /** Runs a command that stands in the section of the alert. Returns what it printed. Throws when it fails. */
  async run(alert: string, command: string, names: Names = {}): Promise<string> {
    const words = sectionOf(alert).replaceAll(/\s+/g, ' ');
    if (!words.includes(`\`${command}\``)) throw new Error(`The runbook of ${alert} does not say: ${command}`);
    return await this.#run(command, names);
  }

  async #run(line: string, names: Names): Promise<string> {
    const { kubeconfig, programs, namespace, logOf, faster, env } = this.#options;
    const folder = await mkdtemp(join(tmpdir(), 'berth-runbook-'));
    try {
      const [, label = ''] = LOGS.exec(line) ?? [];
      await writeFile(join(folder, 'log'), label === '' ? '' : logOf(label));
      const named = Object.entries(names).reduce(
        (text, [word, name]) => text.replaceAll(new RegExp(`\\b${word}\\b`, 'g'), name),
        line.replace(LOGS, `tail -n $2 ${folder}/log`).replaceAll('berth-system', namespace),
      );
      const command = faster(named);
      const PATH = [programs, process.env['PATH']].filter(Boolean).join(delimiter);
      const { code, stdout, stderr } = await run('bash', ['-c', `set -o pipefail; ${command}`], {
        env: { ...process.env, ...env, PATH, KUBECONFIG: kubeconfig },
      });
      if (code !== 0) throw new Error(`${command} ended with ${code}: ${stdout}${stderr}`);
      return stdout;
    } finally {
      await rm(folder, { recursive: true });
    }
  }
}

const LOGS = /kubectl -n \S+ logs -l [^\s=]+=(\S+) --tail=(\d+)/;
