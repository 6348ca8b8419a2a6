import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BEGIN, nonceOf, PACK, readLine, runScript, UNPACK } from '../../../src/cli/run/script.ts';
import { type RunServer, runServer } from '../../support/run-server.ts';
import { finished } from '../../support/ssh-client.ts';
import { programSession } from '../../support/ssh-terminal.ts';
import { waitFor } from '../../support/wait-for.ts';

const MAIN = fileURLToPath(new URL('../../../src/cli/berth.ts', import.meta.url));

let server: RunServer;
let home: string;
beforeEach(async () => {
  server = await runServer();
  home = await mkdtemp(join(tmpdir(), 'berth-run-'));
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(home, { recursive: true });
});

const environment = () => ({ ...process.env, BERTH_URL: server.url, BERTH_API_KEY: 'key', HOME: home });

function start(...words: string[]) {
  return startIn(home, ...words);
}

function startIn(cwd: string, ...words: string[]) {
  return spawn(process.execPath, [MAIN, 'run', '--yes', ...words], { env: environment(), cwd });
}

async function run(...words: string[]) {
  const { code, stdout, stderr } = await finished(start(...words));
  return { code, out: stdout.toString(), said: stderr };
}

async function folder(files: Readonly<Record<string, string>>): Promise<string> {
  const path = join(home, 'project');
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(path, name, '..'), { recursive: true });
    await writeFile(join(path, name), text);
  }
  return path;
}

describe('berth run', () => {
  it('uploads, prints what the program writes, ends with its status, fetches its files and gives the GPU back', async () => {
    const project = await folder({
      'main.sh': 'cat data/a\\ b >result; echo to the end; exit 7',
      'data/a b': 'content',
    });
    const result = await run('--gpu', 'l4', '--upload', project, '--output', 'out/first', '--', 'sh', 'main.sh');
    expect(result).toMatchObject({ code: 7, out: 'to the end\n', said: expect.stringContaining('Uploaded') as string });
    expect(await readFile(join(home, 'out/first/result'), 'utf8')).toBe('content');
    // What was uploaded does not come back.
    expect(await readdir(join(home, 'out/first'))).toEqual(['result']);
    expect(result.said).toContain('Rent 1 x NVIDIA-L4 for 0.50 USD per hour.');
    expect([server.isDeleted, server.calls.at(-1)]).toEqual([true, 'DELETE /instances/i-run1']);
  });

  it('fetches files of any name', async () => {
    const names = ['a\\tb', '-x', ' two  spaces ', 'new\nline', '$(id)', 'é🚀', '*'];
    const script = names.map((_, index) => `echo ${index} >"$${index + 1}"`).join('; ');
    const result = await run('--output', 'out', '--', 'sh', '-c', script, 'sh', ...names);
    expect([result.code, result.said]).toEqual([0, result.said]);
    expect((await readdir(join(home, 'out'))).toSorted()).toEqual(names.toSorted());
  });

  it('fetches from an image whose tar reads no list of names, as that of busybox', async () => {
    const programs = join(home, 'programs');
    await mkdir(programs);
    const lines = [
      '#!/bin/sh',
      'case " $* " in *" -T "*) echo "invalid option" >&2; exit 1 ;; esac',
      'PATH=/usr/bin:/bin exec tar "$@"',
    ];
    await writeFile(join(programs, 'tar'), `${lines.join('\n')}\n`, { mode: 0o755 });
    server.programs = programs;
    const result = await run('--output', 'out', '--', 'sh', '-c', 'mkdir d; echo x >"d/a b"; echo y >c');
    expect(result.code).toBe(0);
    expect((await readdir(join(home, 'out'), { recursive: true })).toSorted()).toEqual(['c', 'd', 'd/a b']);
  });

  it.each([
    ['the disk is full', 'ln -s /dev/full .berth-run/list'],
    ['the program removed what Berth keeps of the run', 'rm -r .berth-run'],
  ])('fetches all the same where %s', async (_what, program) => {
    const { code, said } = await run('--output', 'out', '--', 'sh', '-c', `${program}; echo kept >file`);
    expect([code, said]).toEqual([0, said]);
    expect(await readFile(join(home, 'out/file'), 'utf8')).toBe('kept\n');
  });

  it('fetches everything from an image without find', async () => {
    const programs = join(home, 'programs');
    await mkdir(programs);
    for (const name of ['sh', 'tar']) await symlink(`/usr/bin/${name}`, join(programs, name));
    server.hasOnly = programs;
    const { code, said } = await run('--output', 'out', '--', 'sh', '-c', 'echo kept >file');
    expect([code, said]).toEqual([0, said]);
    expect(await readdir(join(home, 'out'))).toEqual(['file']);
  });

  it('without files to bring or to fetch makes no folder', async () => {
    const result = await run('--', 'printf', 'no line end');
    expect(result).toMatchObject({ code: 0, out: 'no line end' });
    expect(await readdir(home)).toEqual([]);
    expect(server.isDeleted).toBe(true);
  });

  it('sees the end of a program that ends no line, however long that is', async () => {
    const result = await run(
      '--output',
      'out',
      '--',
      'sh',
      '-c',
      'echo kept >file; head -c 100000 /dev/zero | tr "\\0" x',
    );
    expect([result.code, server.isDeleted, await readdir(join(home, 'out'))]).toEqual([0, true, ['file']]);
    expect(result.out).toContain('xxxx [line cut by Berth]');
  });

  it('loses no line and prints none twice when the connections break, and goes on', async () => {
    const child = start(
      '--no-fetch',
      '--',
      'sh',
      '-c',
      `echo 1; while [ ! -e ${home}/go ]; do sleep 0.1; done; echo 2`,
    );
    let out = '';
    child.stdout.on('data', (part) => (out += String(part)));
    const end = finished(child);
    await waitFor('the first line', () => out === '1\n');
    server.cut();
    await writeFile(join(home, 'go'), '');
    expect((await end).code).toBe(0);
    expect(out).toBe('1\n2\n');
    expect(server.isDeleted).toBe(true);
  });

  it('prints JSON for programs: a line for each line, and one for the end', async () => {
    const { code, out } = await run('--json', '--', 'sh', '-c', 'echo one; echo x >file; exit 3');
    expect(code).toBe(3);
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toMatchObject([{ text: 'one' }, { id: 'i-run1', status: 3, output: 'berth-i-run1' }]);
  });

  it.each([
    ['no program', [], 'needs a program after --'],
    ['a folder that is not there', ['--upload', '/nowhere', '--', 'true'], '--upload /nowhere is not there'],
    ['a folder for results that has files', ['--output', '.', '--', 'true'], 'which would be mixed'],
  ])('rents nothing for %s', async (_what, words, message) => {
    await writeFile(join(home, 'mine'), '');
    const { code, said } = await run(...words);
    expect([code, said]).toEqual([2, expect.stringContaining(message)]);
    expect(server.calls).toEqual([]);
  });

  it('rents nothing where its files could not be stored', async () => {
    const { code, stderr } = await finished(startIn('/proc', '--', 'true'));
    expect([code, stderr]).toEqual([2, expect.stringContaining('cannot be stored in /proc')]);
    expect(server.calls).toEqual([]);
    expect((await finished(startIn('/proc', '--no-fetch', '--', 'true'))).code).toBe(0);
  });

  it('uploads a folder of more names than a command line has', async () => {
    const names = Array.from({ length: 12_000 }, (_, index) => `${index}-${'x'.repeat(180)}`);
    const project = join(home, 'many');
    await mkdir(project);
    for (const name of names) writeFileSync(join(project, name), '');
    const result = await run('--upload', project, '--no-fetch', '--', 'sh', '-c', 'ls | wc -l');
    expect([result.code, result.out.trim(), result.said]).toEqual([0, '12000', result.said]);
  });

  it('rents nothing where only simulated nodes have room, and gives back what was queued and came to be on one', async () => {
    server.offer = { simulated: true };
    const refused = await run('--', 'true');
    expect([refused.code, server.calls]).toEqual([5, ['POST /offers/search']]);
    expect(refused.said).toContain('Only simulated nodes have GPUs that fit');
    server.offer = {};
    server.state = { ...server.state, simulated: true };
    const placed = await run('--', 'sleep', '60');
    expect([placed.code, server.isDeleted]).toEqual([5, true]);
    expect(placed.said).toContain('no program runs there');
  });

  it('gives the instance back when it never starts', async () => {
    server.state = { state: 'failed', reason: 'ImagePullFailed', message: 'The registry says no.' };
    const { code, said } = await run('--', 'true');
    expect([code, server.isDeleted]).toEqual([1, true]);
    expect(said).toContain('berth: i-run1 is failed: The registry says no.');
  });

  it('keeps the instance when what it wrote cannot be fetched, and comes back to it', async () => {
    server.refusesCommands = 403;
    const first = await run('--', 'sh', '-c', 'echo hello; echo kept >file; exit 4');
    expect([first.code, server.isDeleted]).toEqual([125, false]);
    expect(first.said).toContain('The files of the program were not fetched: No commands here.');
    expect(first.said).toContain('berth run --attach i-run1 tries again');
    server.refusesCommands = undefined;
    const again = await run('--attach', 'i-run1');
    expect(again).toMatchObject({ code: 4, out: 'hello\n' });
    expect(await readFile(join(home, 'berth-i-run1/file'), 'utf8')).toBe('kept\n');
    expect(server.isDeleted).toBe(true);
  });

  it.each([
    ['without the folder', []],
    ['with the folder', ['--upload', 'project']],
  ])('brings files once: who comes back %s changes nothing that the program made of them', async (_what, words) => {
    const project = await folder({ state: 'as it was' });
    const program = 'echo made >state; : >begun; while [ ! -e end ]; do sleep 0.1; done';
    const first = start('--upload', project, '--', 'sh', '-c', program);
    await waitFor('the program', () => existsSync(join(server.workspace, 'begun')));
    first.kill('SIGKILL');
    await finished(first);
    await writeFile(join(server.workspace, 'end'), '');
    const again = await run('--attach', 'i-run1', ...words);
    expect([again.code, again.said]).toEqual([0, again.said]);
    expect(await readFile(join(home, 'berth-i-run1/state'), 'utf8')).toBe('made\n');
  });

  it('goes on where it comes back while nothing runs, as when others have the place', async () => {
    const project = await folder({ state: 'as it was' });
    const first = start('--upload', project, '--', 'sh', '-c', ': >begun; while [ ! -e end ]; do sleep 0.1; done');
    await waitFor('the program', () => existsSync(join(server.workspace, 'begun')));
    first.kill('SIGKILL');
    await finished(first);
    server.refusesCommands = 409;
    const again = finished(start('--attach', 'i-run1', '--no-fetch'));
    await writeFile(join(server.workspace, 'end'), '');
    expect((await again).code).toBe(0);
  });

  it('fetches from the next start where others took the place of a run that was over', async () => {
    server.refusesCommands = 409;
    const ended = finished(start('--output', 'out', '--', 'sh', '-c', 'echo kept >file; echo said; exit 3'));
    await waitFor('a refusal', () => server.refusals > 0);
    // It may start again before the client has given up.
    server.startAgain();
    await waitFor('that the client has given up on the first end', () => server.refusals > 5);
    server.refusesCommands = undefined;
    expect(await ended).toMatchObject({ code: 3, stdout: Buffer.from('said\n') });
    expect([await readdir(join(home, 'out')), server.isDeleted]).toEqual([['file'], true]);
  });

  it('writes no file outside of its folder, whatever the instance sends', async () => {
    const victim = join(home, 'victim');
    await mkdir(victim);
    server.packsWith = `cd /workspace && mkdir -p a b/link && ln -s ${victim} a/link && echo evil >b/link/planted
      tar -cf t -C a link && tar -rf t -C b link/planted && tar -P -rf t ${home}/../$(basename ${home})/victim/. b/link/planted
      cat t`;
    await run('--', 'true');
    expect(await readdir(victim)).toEqual([]);
  });

  it('a pipeline that is cancelled gives the GPU back', async () => {
    const child = start('--', 'sh', '-c', 'echo begun; sleep 60');
    child.stdout.once('data', () => child.kill('SIGTERM'));
    expect((await finished(child)).code).toBe(130);
    expect(server.isDeleted).toBe(true);
  });
});

it('Ctrl-C while the server rents gives back what it then answers', async () => {
  const child = start('--', 'sh', '-c', 'sleep 60');
  let said = '';
  child.stderr.on('data', (part) => (said += String(part)));
  server.whileRenting = async () => {
    child.kill('SIGINT');
    await waitFor('a word', () => said.includes('answers in a moment'));
  };
  expect([(await finished(child)).code, server.isDeleted]).toEqual([130, true]);
  expect(said).toContain('i-run1 is given back.\nberth: Nothing runs.');
});

describe('Ctrl-C at a terminal of 60 columns asks, and', () => {
  const begin = async () => {
    const line = `'${process.execPath}' '${MAIN}' run -- sh -c 'echo begun; sleep 2; echo over'`;
    const session = programSession(['sh', '-c', `stty cols 60; exec ${line}`], environment());
    await session.type('', /\[y\/N\] /);
    await session.type('y\r', /begun/);
    await session.type('\u0003', /continue \(Enter\)\? /);
    return session;
  };

  it('gives the GPU back', async () => {
    const session = await begin();
    expect(await session.end('s\r')).toBe(130);
    expect(server.isDeleted).toBe(true);
  });

  it('leaves the program running, and says how to come back', async () => {
    const session = await begin();
    expect(await session.end('l\r')).toBe(130);
    expect(server.isDeleted).toBe(false);
    expect(session.screen).toContain('berth run --attach i-run1 comes back');
  });

  it('goes on', async () => {
    const session = await begin();
    expect(await session.end('\r')).toBe(0);
    expect(session.screen).toMatch(/over/);
    expect(server.isDeleted).toBe(true);
  });
});

describe('the script of a run', () => {
  const nonce = '0123456789abcdef';

  it('leaves every variable of the user as it is', async () => {
    const names = 'abcdefghijklmnopqrstuvwxyz'.split('');
    const values = Object.fromEntries(names.map((name) => [name, name]));
    const words = ['sh', '-c', `echo ${names.map((name) => `$${name}`).join('')}`];
    const body = runScript({ nonce, upload: true, fetch: false }).replaceAll('/workspace', home);
    // The files are there when it has waited once.
    await writeFile(join(home, 'sleep'), '#!/bin/sh\n: >.berth-run/go\n', { mode: 0o755 });
    const PATH = `${home}:${process.env['PATH']}`;
    const child = spawn('/bin/sh', ['-c', body, 'berth-run', ...words], { env: { PATH, ...values } });
    expect(String((await finished(child)).stdout)).toContain(`\n${names.join('')}\n`);
  });

  it('begins again where others took its place, and brings what it wrote before, whatever times its files have', async () => {
    const here = (text: string): string => text.replaceAll('/workspace', home);
    await writeFile(join(home, 'uploaded'), '');
    const program =
      'if [ -e first ]; then mv uploaded renamed; echo >old; touch -d 2001-01-01 old; else echo >first; echo begun; exec sleep 60; fi';
    const live = () => {
      const words = ['-c', here(runScript({ nonce, upload: false, fetch: true })), 'berth-run', 'sh', '-c', program];
      return spawn('/bin/sh', words, { stdio: ['ignore', 'pipe', 'inherit'] });
    };
    const first = live();
    first.stdout.once('data', () => first.kill('SIGTERM'));
    await once(first, 'close');
    const second = live();
    await once(second.stdout, 'data');
    const { stdout } = await finished(spawn('sh', ['-c', `${here(PACK)} | tar -tf -`]));
    second.kill('SIGTERM');
    await once(second, 'close');
    expect(stdout.toString().trim().split('\n').toSorted()).toEqual(['./first', './old', './renamed']);
  });

  it('waits for copies that take longer than ten minutes, and no longer than that for nothing', async () => {
    const here = (text: string): string => text.replaceAll('/workspace', home);
    const count = join(home, 'seconds');
    const clock = join(home, 'clock');
    const state = join(home, '.berth-run');
    // Seconds pass as fast as the machine can count them, and 600 are 30. While the run waits for the client, they pass
    // only if there is a clock, or no test any more.
    const passes = `[ ! -e ${home} ] || [ -e ${clock} ] || { [ -e ${state}/go ] && [ ! -e ${state}/exit ]; }`;
    const sleep = `#!/bin/sh\nuntil ${passes}; do /bin/sleep 0.02; done\necho >>${count}\n`;
    await writeFile(join(home, 'sleep'), sleep, { mode: 0o755 });
    const env = { ...process.env, PATH: `${home}:${process.env['PATH']}` };
    const body = here(runScript({ nonce, upload: true, fetch: true })).replaceAll('-lt 600', '-lt 30');
    const words = ['-c', body, 'berth-run', 'sh', '-c', 'cat file; head -c 4000000 /dev/zero >big'];
    const script = spawn('/bin/sh', words, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    let out = '';
    script.stdout.on('data', (part: Buffer) => (out += part.toString()));
    const end = once(script, 'close');
    const pass = async ({ pid }: ChildProcess): Promise<void> => {
      const copy = async (): Promise<string> => await readFile(join(state, 'copy'), 'utf8').catch(() => '');
      await waitFor('the copy', async () => (await copy()) === `${pid}\n`);
      await writeFile(clock, '');
      const from = (await readFile(count, 'utf8').catch(() => '')).length;
      const passed = async (): Promise<boolean> => (await readFile(count, 'utf8').catch(() => '')).length > from + 50;
      await waitFor('more than ten minutes', async () => script.exitCode !== null || (await passed()));
      expect([script.exitCode, out]).toEqual([null, out]);
    };
    await waitFor('the request', () => out.includes(' upload\n'));
    const unpack = spawn('sh', ['-c', here(UNPACK)], { stdio: ['pipe', 'ignore', 'inherit'] });
    await pass(unpack);
    await rm(clock);
    const project = await folder({ file: 'content' });
    const packed = spawn('tar', ['-cf', '-', '-C', project, 'file']);
    packed.stdout.pipe(unpack.stdin);
    await once(unpack, 'close');
    await finished(spawn('sh', ['-c', here(BEGIN)]));
    await waitFor('its end', () => out.endsWith(`berth-run ${nonce} exit 0\n`));
    const pack = spawn('sh', ['-c', here(PACK)], { stdio: ['ignore', 'pipe', 'inherit'] });
    await pass(pack);
    pack.stdout.resume();
    expect(await end).toEqual([0, null]);
    const mark = `berth-run ${nonce} exit 0\n`;
    expect(out).toBe(`berth-run ${nonce} upload\ncontent${mark}${mark}`);
  });

  it('keeps room on the disk for what it writes when the program has filled it', async () => {
    const body = runScript({ nonce, upload: false, fetch: true }).replaceAll('/workspace', home);
    const words = ['-c', body, 'berth-run', 'sh', '-c', 'wc -c <.berth-run/room; exit 3'];
    const script = spawn('/bin/sh', words, { stdio: ['ignore', 'pipe', 'inherit'] });
    let out = '';
    script.stdout.on('data', (part: Buffer) => (out += part.toString()));
    await waitFor('its end', () => out.includes(' exit 3\n'));
    script.kill('SIGTERM');
    await once(script, 'close');
    expect(Number.parseInt(out, 10)).toBe(65_536);
    expect((await readdir(join(home, '.berth-run'))).toSorted()).toEqual(['begin', 'exit']);
  });

  it('tells a client that comes back which run it is', () => {
    const script = runScript({ nonce, upload: true, fetch: true });
    expect(nonceOf(['/bin/sh', '-c', script, 'berth-run'])).toBe(nonce);
    expect([nonceOf(null), nonceOf(['python'])]).toEqual([undefined, undefined]);
    expect(script.length).toBeLessThan(4096);
  });

  it('has marks that follow a line without an end, and are of its run alone', () => {
    expect(readLine(`halfberth-run ${nonce} exit 3`, nonce)).toEqual({
      text: 'half',
      mark: { asks: 'fetch', status: 3 },
    });
    expect(readLine(`berth-run ${nonce} upload`, nonce).mark).toEqual({ asks: 'upload' });
    for (const line of ['berth-run ffff exit 0', `berth-run ${nonce} exit 0 more`, 'text'])
      expect(readLine(line, nonce)).toEqual({ text: line, mark: undefined });
  });
});
