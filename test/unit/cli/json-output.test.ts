import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { type Answer, berth, json, list, stream } from '../../support/scripted-cli.ts';

// Terminals obey U+009B as the beginning of a sequence, and U+0090 of a string. JSON.stringify leaves them as they are.
const EVIL = 'a\u009b2J\u0090x\u007f\u202eb\u001b[2Jé漢';
const ESCAPED = String.raw`a\u009b2J\u0090x\u007f\u202eb\u001b[2Jé漢`;
const ONE = { id: 'i-1', name: EVIL, gpu_name: 'L4', gpu_count: 1, state: 'running', reason: 'Running', message: EVIL };
const INSTANCE = json(200, ONE);

const lineOf = (text: string) => ({ id: 1, at: '2026-11-27T12:46:30.660Z', start: 1, stream: 'stdout', text });
const frame = (event: string, data: object): string => `event: ${event}\nid: 1\ndata: ${JSON.stringify(data)}\n\n`;
const END = frame('end', { state: 'stopped', reason: 'Stopped', message: 'It was stopped.' });

it.each<[command: string, answers: Answer[]]>([
  ['api instances/i-1', [INSTANCE]],
  ['show i-1 --json', [INSTANCE]],
  ['ls --json', [list(ONE)]],
  ['logs i-1 --json', [INSTANCE, json(200, { data: [lineOf(EVIL)], kept: false, start: 1, truncated: false })]],
  ['logs -f i-1 --json', [INSTANCE, stream(frame('line', lineOf(EVIL)) + END)]],
  ['events -f i-1 --json', [INSTANCE, stream(frame('event', ONE) + END)]],
])('berth %s prints JSON that no terminal obeys, and programs read what was meant', async (command, answers) => {
  for (const width of [80, undefined]) {
    const { out, said } = await berth(command.split(' '), answers, [], { ...(width !== undefined && { width }) });
    expect(out, said).toContain(ESCAPED);
    // oxlint-disable-next-line no-control-regex
    expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\p{Bidi_Control}]/u);
    expect(JSON.stringify(JSON.parse(out))).toContain(JSON.stringify(EVIL).slice(1, -1));
  }
});

it('no command prints JSON in another way', () => {
  const files = readdirSync(join(ROOT, 'src/cli'), { recursive: true, encoding: 'utf8' });
  const printing = files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => readFileSync(join(ROOT, 'src/cli', file), 'utf8').split('\n'))
    .filter((line) => line.includes('JSON.stringify') && /\\n|terminal|\bout\(/.test(line));
  // The settings, in a file that only their owner reads.
  expect(printing.map((line) => line.trim())).toEqual([
    'await writePrivate(env, path, `${JSON.stringify(access)}\\n`);',
  ]);
});
