import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../../../tools/lib/paths.ts';

const notes = readFileSync(join(ROOT, 'docs/run/releases.md'), 'utf8');
const versions = [...notes.matchAll(/^## (\S+)$/gm)].map(([, version]) => version);

test('the newest release of the notes is the version of the chart and of the program', () => {
  const chart = parse(readFileSync(join(ROOT, 'charts/berth/Chart.yaml'), 'utf8')) as Record<string, string>;
  const program = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  expect([chart['version'], chart['appVersion'], program.version]).toEqual(Array(3).fill(versions[0]));
});

test('the chart has an icon, and links to files that are there', () => {
  const chart = readFileSync(join(ROOT, 'charts/berth/Chart.yaml'), 'utf8');
  expect((parse(chart) as Record<string, string>)['icon']).toMatch(/\.svg$/);
  const links = [...chart.matchAll(/berth-dev\/berth\/(?:blob\/)?main\/(\S+)/g)].map(([, path = '']) => path);
  expect(links.length).toBeGreaterThan(4);
  expect(links.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('every release says what it changes', () => {
  expect(new Set(versions).size).toBe(versions.length);
  for (const section of notes.split(/^## /m).slice(1)) expect(section).toMatch(/^- /m);
});
