import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import axe from 'axe-core';
import express from 'express';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { docsRouter } from '../../../src/http/server/docs.ts';
import { ROOT, stateFolder } from '../../../tools/lib/paths.ts';
import { run } from '../../../tools/lib/shell.ts';
import { launchBrowser, STEP_MS } from '../../support/browser/browser.ts';
import { describeWith } from '../../support/needs.ts';

const BUILT = join(ROOT, 'src/http/server/site');
const NARROW = { width: 390, height: 844 };
const WIDE = { width: 1440, height: 900 };

describeWith('chromium')('the documents at /docs/', () => {
  let server: Server;
  let url: string;
  let browser: Browser;
  let page: Page;
  const requested: string[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    const built = await run(process.execPath, [join(ROOT, 'tools/site/main.ts')], { cwd: ROOT });
    expect(built.code, built.stderr).toBe(0);
    server = createServer(express().use(docsRouter()));
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    url = `http://localhost:${(server.address() as AddressInfo).port}`;
    browser = await launchBrowser();
    page = await browser.newPage({ viewport: WIDE, reducedMotion: 'reduce', colorScheme: 'light' });
    page.setDefaultTimeout(STEP_MS);
    page.on('request', (request) => requested.push(request.url()));
    page.on('response', (answer) => void (answer.status() >= 400 && complaints.push(answer.url())));
    page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
    page.on('pageerror', (error) => complaints.push(error.message));
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    server.close();
  });

  it('has each document, and no script in a page, which the content policy would not run', async () => {
    const pages = readdirSync(BUILT, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html'));
    const documents = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
    const wanted = documents
      .filter((name) => name.endsWith('.md') && !name.startsWith('decisions'))
      .map((name) => name.replace('README', 'index').replace(/\.md$/, '.html'));
    expect(pages.filter((name) => name !== '404.html').toSorted()).toEqual(wanted.toSorted());
    for (const name of pages) {
      const html = readFileSync(join(BUILT, name), 'utf8');
      expect(html.match(/<script(?![^>]* src=")|\son\w+="/g), name).toBeNull();
      const path = `/docs/${name.replace(/(?:^index)?\.html$/, '')}`;
      const answer = await fetch(`${url}${path}`);
      expect([answer.status, answer.headers.get('content-type')], path).toEqual([200, 'text/html; charset=utf-8']);
      expect(answer.headers.get('content-security-policy')).toContain("script-src 'self';");
    }
  });

  it('leads from the index to a page, and to the API reference', async () => {
    await page.goto(`${url}/docs`);
    expect(page.url()).toBe(`${url}/docs/`);
    await page.locator('main').getByRole('link', { name: 'the concepts' }).click();
    await page.getByRole('heading', { name: 'Concepts', level: 1 }).waitFor();
    await page.waitForFunction("document.querySelector('main img').naturalWidth > 0");
    await page.getByRole('link', { name: 'API reference' }).first().click();
    await page.getByText('Rent an instance', { exact: true }).waitFor();
  });

  it('opens a page at a title', async () => {
    await page.goto(`${url}/docs/use/http#the-fleet`);
    await page.waitForFunction('scrollY > 500');
  });

  it('finds words', async () => {
    await page.goto(`${url}/docs/`);
    await page.getByRole('button', { name: 'Search' }).click();
    await page.locator('#localsearch-input').fill('BerthNoLeader');
    await page.locator('#localsearch-list a[href^="/docs/run/runbooks"]').first().click();
    await page.waitForURL(`${url}/docs/run/runbooks#**`);
  });

  it('is light and dark, wide and narrow, and readable by all', async () => {
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const seen = new Set<unknown>();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const [width, viewport] of Object.entries({ wide: WIDE, narrow: NARROW })) {
        await page.setViewportSize(viewport);
        for (const name of ['', 'use/renter', 'run/operations', 'concepts']) {
          await page.goto(`${url}/docs/${name}`);
          expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${name} ${width}`).toBe(
            true,
          );
          await page.screenshot({
            path: join(stateFolder(), 'pictures', `docs-${name.replace('/', '-')}-${colorScheme}-${width}.png`),
          });
        }
        await page.evaluate(axe.source);
        const { violations } = await page.evaluate<axe.AxeResults>('axe.run("main")');
        expect(
          violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
          `${colorScheme} ${width}`,
        ).toEqual([]);
      }
      seen.add(await background());
    }
    expect(seen.size).toBe(2);
  });

  it('loads nothing from elsewhere and breaks no policy', () => {
    expect(requested.filter((one) => !one.startsWith(url) && !one.startsWith('data:'))).toEqual([]);
    expect(complaints).toEqual([]);
  });
});
