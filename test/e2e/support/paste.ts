import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freePorts } from '../../../tools/lib/free-ports.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { NAMESPACE } from './release.ts';
import type { SshIdentity } from './ssh.ts';

/** The commands in a text such as NOTES.txt: the lines that are indented by three spaces and are not sentences. */
export function commandsOf(notes: string): string {
  const lines = notes.split('\n').filter((line) => line.startsWith('   '));
  return lines
    .map((line) => line.slice(3))
    .filter((line) => !/^[A-Z][a-z]+ .*[^&]$/.test(line))
    .join('\n');
}

/**
 * The commands of the notes; where they name the page and a token, the token signs in. The api role does not find the
 * dashboard in a cluster that resolves no names, so kubectl leads to it at this port.
 */
export function withSignIn(commands: string, port: number): string {
  const token = /^kubectl .* create token first .*$/m;
  const page = /^echo "Open \S+\/dashboard and paste the token.*$/m;
  if (!token.test(commands) || !page.test(commands)) throw new Error('The notes name no page to sign in to.');
  const forward = `kubectl -n ${NAMESPACE} port-forward service/berth-dashboard ${port}:80 &`;
  const call = `curl -fsS --retry 5 --retry-all-errors -H 'content-type: application/json' -H 'x-berth-dashboard: 1'`;
  const signIn = `${call} --data @token http://localhost:${port}/dashboard/api/session`;
  return commands
    .replace(token, (line) => `${line} | sed 's/.*/{"token":"&"}/' > token`)
    .replace(page, (line) => `${line}\n${forward}\n${signIn}`);
}

export interface Desk {
  kubeconfig: string;
  /** Paths of the programs. */
  kubectl: string;
  helm: string;
  /** The key in ~/.ssh/id_ed25519. */
  identity: SshIdentity;
}

/** The same commands with free ports of this machine in place of 2222 and 8080, which may be in use. */
async function withFreePorts(commands: string): Promise<string> {
  const [ssh = 0, http = 0] = await freePorts(2);
  return commands
    .replaceAll(' 2222:', ` ${ssh}:`)
    .replaceAll('-p 2222 ', `-p ${ssh} `)
    .replaceAll(' 8080:', ` ${http}:`)
    .replaceAll(':8080/', `:${http}/`);
}

/** Runs commands in a shell in an empty folder, as a reader would paste them. Returns their output. Throws when one fails. */
export async function paste(commands: string, { kubeconfig, kubectl, helm, identity }: Desk): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'berth-e2e-home-'));
  try {
    const ssh = join(home, '.ssh');
    await mkdir(ssh);
    await writeFile(join(ssh, 'id_ed25519'), identity.privateKey, { mode: 0o600 });
    await writeFile(join(ssh, 'id_ed25519.pub'), identity.publicKey);
    // ssh takes its folder from /etc/passwd and not from HOME.
    const config = ['IdentityFile', 'UserKnownHostsFile'].map(
      (option, index) => `${option} ${join(ssh, index === 0 ? 'id_ed25519' : 'known_hosts')}\n`,
    );
    await writeFile(join(ssh, 'config'), `${config.join('')}BatchMode yes\nStrictHostKeyChecking yes\n`);
    const script = [
      'set -euo pipefail',
      `berth() { '${process.execPath}' '${join(ROOT, 'src/main.ts')}' "$@"; }`,
      `ssh() { command ssh -F '${join(ssh, 'config')}' "$@"; }`,
      "trap 'kill $(jobs -p) 2>/dev/null || :' EXIT",
      await withFreePorts(commands),
    ];
    const PATH = `${dirname(kubectl)}:${dirname(helm)}:${process.env['PATH'] ?? ''}`;
    const env = { ...process.env, HOME: home, KUBECONFIG: kubeconfig, PATH };
    const { code, stdout, stderr } = await run('bash', ['-c', script.join('\n')], { env, cwd: home });
    if (code !== 0) throw new Error(`exit status ${code}\n${stdout.slice(-5000)}\n${stderr.slice(-1500)}`);
    return stdout;
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
