import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { explainFailure, LocalFailure } from '../../../tools/lib/failure.ts';
import type { Host } from '../../../tools/lib/host/host.ts';
import { consentOf, meetNeeds, type Needs } from '../../../tools/lib/host/meet-needs.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { SCRIPT_NEEDS } from '../../../tools/scripts/needs.ts';
import { FakeHost } from '../../support/fake-host.ts';
import { prepareScript, type PrepareOptions } from '../../../tools/scripts/prepare.ts';

const INSTALL = 'apt-get install -y --no-install-recommends rsync chromium';

function meet(host: Host, consent: Partial<Needs> = {}) {
  const names = ['rsync', 'ssh', 'chromium'] as const;
  return meetNeeds({ host, names, subject: 'Some tests need', yes: false, interactive: false, ...consent });
}

describe('meetNeeds', () => {
  it('asks nobody where nothing is missing', async () => {
    const host = new FakeHost('mmdebstrap');
    expect(await meet(host, { interactive: true })).toBeUndefined();
    expect([host.asked, host.installed]).toEqual([[], []]);
  });

  it('asks at a terminal, and takes no for an answer', async () => {
    const host = new FakeHost('rsync', 'chromium');
    const shortage = await meet(host, { interactive: true });
    expect(host.asked).toEqual([`Some tests need rsync, chromium. Install them with \`${INSTALL}\`?`]);
    expect(host.installed).toEqual([]);
    expect(shortage).toEqual({ missing: ['rsync', 'chromium'], install: INSTALL, failed: undefined });
  });

  it('installs after a yes at a terminal', async () => {
    const host = new FakeHost('rsync', 'chromium');
    host.answer = true;
    expect(await meet(host, { interactive: true })).toBeUndefined();
    expect(host.installed).toEqual([INSTALL]);
  });

  it('installs without a question with --yes and in CI', async () => {
    for (const { yes } of [consentOf(['--yes'], {}), consentOf([], { CI: 'true' })]) {
      const host = new FakeHost('rsync', 'chromium');
      expect(await meet(host, { yes, interactive: true })).toBeUndefined();
      expect([host.asked, host.installed]).toEqual([[], [INSTALL]]);
    }
    expect(consentOf(['-t', 'yes'], { CI: 'false' }).yes).toBe(false);
  });

  it('neither asks nor installs without root', async () => {
    const host = new FakeHost('rsync', 'chromium');
    host.isRoot = false;
    const shortage = await meet(host, { yes: true, interactive: true });
    expect([host.asked, host.installed]).toEqual([[], []]);
    expect(shortage).toMatchObject({ install: INSTALL, failed: undefined });
  });

  it('uses the names of Fedora with dnf, and gives up without a package manager', async () => {
    const fedora = new FakeHost('ssh', 'rsync');
    fedora.manager = 'dnf';
    await meet(fedora, { yes: true });
    expect(fedora.installed).toEqual(['dnf install -y rsync openssh-clients']);
    const other = new FakeHost('ssh');
    other.manager = undefined;
    expect(await meet(other, { yes: true })).toEqual({ missing: ['ssh'], install: undefined, failed: undefined });
  });

  it('says why an installation failed', async () => {
    const host = new FakeHost('rsync', 'chromium');
    host.failure = '`apt-get install` failed: E: no network';
    expect(await meet(host, { yes: true })).toMatchObject({ missing: ['rsync', 'chromium'], failed: host.failure });
  });
});

async function prepare(script: string, host: Host, options: Partial<PrepareOptions> = {}): Promise<string> {
  const requireCluster = () => Promise.resolve();
  try {
    await prepareScript(script, { host, yes: false, interactive: false, requireCluster, ...options });
    return 'ready';
  } catch (error) {
    return explainFailure(error);
  }
}

describe('prepareScript', () => {
  it('lets a script that skips tests go on without packages, but not after an installation that failed', async () => {
    const host = new FakeHost('chromium', 'runc');
    expect(await prepare('test', host)).toBe('ready');
    expect(await prepare('test', host, { interactive: true })).toBe('ready');
    expect(host.asked).toHaveLength(1);
    host.failure = '`apt-get install` failed: E: no network';
    expect(await prepare('test', host, { yes: true })).toMatch(/^Error: .*E: no network\nNext step: .*without --yes/);
  });

  it('says in one message what a script lacks, what it is for, and the command that brings it', async () => {
    expect(await prepare('e2e', new FakeHost('ipset', 'rsync'))).toBe(
      [
        'Error: `npm run e2e` cannot run: this machine lacks ipset, rsync.',
        'Next step: This installs the packages and runs it: npm run e2e -- --yes',
        '  | ipset holds the addresses that network policies allow',
        '  | rsync copies files to and from instances',
      ].join('\n'),
    );
  });

  it('installs nothing for a script that cannot run after it', async () => {
    const host = new FakeHost('go', 'rsync');
    const text = await prepare('image', host, { yes: true });
    expect(host.installed).toEqual([]);
    expect(text).toMatch(/lacks go, rsync\.\nNext step: Install Go .*npm run image -- --yes\n {2}\| go builds/);
  });

  it('names root, the system and the package manager where they are what is missing', async () => {
    const user = new FakeHost();
    user.isRoot = false;
    expect(await prepare('chaos', user)).toMatch(/containers need root\.\nNext step: Then run: sudo npm run chaos$/);
    const mac = new FakeHost();
    mac.platform = 'darwin';
    expect(await prepare('bench:ssh', mac)).toMatch(/containers need Linux\.\nNext step: Run it on Linux, as root/);
    const fedora = new FakeHost();
    fedora.manager = 'dnf';
    expect(await prepare('image', fedora)).toMatch(/lacks apt-get\.\nNext step: .*docker build/);
    const bare = new FakeHost('Python venv');
    bare.manager = undefined;
    expect(await prepare('bench:gateway', bare)).toMatch(/Next step: Install Python venv by hand/);
  });

  it('says that the unit tests run without a way to a cluster', async () => {
    const requireCluster = () => Promise.reject(new LocalFailure('No way.', 'Install Docker.'));
    const text = await prepare('test', new FakeHost(), { requireCluster });
    expect(text).toBe(
      'Error: No way.\nNext step: Install Docker. The unit tests run without a cluster: npm test -- --project "unit*"',
    );
    expect(await prepare('bench:http', new FakeHost(), { requireCluster })).not.toContain('unit');
    expect(await prepare('e2e', new FakeHost(), { requireCluster })).toBe('ready');
  });
});

describe('the scripts of package.json', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const parts = new Set(['check:types', 'check:lint', 'check:format', 'check:dead', 'check:crds', 'check:english']);

  it.each(Object.keys(scripts).filter((name) => !parts.has(name)))('%s starts on a fresh machine', (name) => {
    const commands = (scripts[name] ?? '').split(' && ');
    for (const command of commands) expect(command).toMatch(/^(\w+=\w+ )?node tools\/bootstrap\.mjs /);
    const needs = /--needs (\S+) .* --$/.exec(scripts[name] ?? '')?.[1];
    expect(needs).toBe(name in SCRIPT_NEEDS ? name : undefined);
  });

  it('are those that have needs', () => {
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(Object.keys(SCRIPT_NEEDS)));
  });
});
