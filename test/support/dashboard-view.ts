import { mkdirSync } from 'node:fs';
import { launchBrowser, STEP_MS } from './browser/browser.ts';
import { crowded } from './browser/crowded.ts';
import { join } from 'node:path';
import axe from 'axe-core';
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { ROOT } from '../../tools/lib/paths.ts';

/** Pictures of every view in both themes, to be looked at. */
const PICTURES = process.env['BERTH_PICTURES'] ?? join(ROOT, '.berth/pictures');

const THEMES = ['light', 'dark'] as const;
type Theme = (typeof THEMES)[number];
/** A phone, a tablet, a laptop and a screen, in CSS pixels. */
const WIDTHS = [390, 768, 1180, 1440] as const;
/** Of a picture, in CSS pixels. */
const HIGHEST = 4000;
/** Is there when what has just been made larger is painted. */
const PAINTED = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))';
const SIZE = { width: 1180, height: 800 };

/** The dashboard in Chromium, as one person sees it. */
export interface DashboardView extends AsyncDisposable {
  page: Page;
  /** Every URL that the page has asked for. */
  requested: string[];
  /** The text of every answer that it got. */
  answers: string[];
  /** Errors of scripts, and of the console, which tells of policies that were broken. */
  complaints: string[];
  signIn: (token: string, path?: string) => Promise<void>;
  /** What axe has against the page as it is, in both themes. */
  findings: () => Promise<string[]>;
  /** Takes pictures in both themes and four widths: in none the page is wider than the screen, or a text touches another. */
  picture: (name: string) => Promise<void>;
}

/** The button of the menu that has the project and the person. */
export function accountOf(page: Page): Locator {
  return page.getByRole('button', { name: /^Project and account: / });
}

export async function signOut(page: Page): Promise<void> {
  await accountOf(page).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
}

/** @param url of the api role */
export async function openDashboard(
  url: string,
  own: { size: typeof SIZE; theme: Theme } = { size: SIZE, theme: 'light' },
): Promise<DashboardView> {
  mkdirSync(PICTURES, { recursive: true });
  const browser = await launchBrowser();
  // A colour that is on its way to the other theme has no contrast.
  const page = await browser.newPage({
    viewport: own.size,
    colorScheme: own.theme,
    reducedMotion: 'reduce',
    ignoreHTTPSErrors: true,
  });
  page.setDefaultTimeout(STEP_MS);
  const [requested, answers, complaints]: [string[], string[], string[]] = [[], [], []];
  page.on('request', (request) => requested.push(request.url()));
  page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('response', (response) => {
    response.text().then(
      (text) => answers.push(text),
      () => undefined,
    );
  });
  /** What follows the size of its box, as a terminal does, has followed then. */
  async function resize(size: typeof SIZE): Promise<void> {
    await page.setViewportSize(size);
    await page.evaluate(PAINTED);
  }
  async function inThemes(look: (theme: Theme) => Promise<void>): Promise<void> {
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      await look(colorScheme);
    }
    await page.emulateMedia({ colorScheme: own.theme });
  }
  return {
    page,
    requested,
    answers,
    complaints,
    async signIn(token, path = '') {
      await page.goto(`${url}/dashboard${path}`);
      await page.getByLabel('Kubernetes token').fill(token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await accountOf(page).waitFor();
    },
    async findings() {
      const found: string[] = [];
      await inThemes(async () => {
        await page.evaluate(axe.source);
        const { violations } = await page.evaluate<axe.AxeResults>('axe.run()');
        for (const { id, nodes } of violations) found.push(`${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`);
      });
      return found;
    },
    async picture(name) {
      for (const width of WIDTHS) {
        await resize({ width, height: SIZE.height });
        expect([name, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([name, width]);
        // What is out of sight may not be painted.
        const whole = Number(await page.evaluate('document.documentElement.scrollHeight'));
        await resize({ width, height: Math.min(Math.max(whole, SIZE.height), HIGHEST) });
        expect([name, width, await crowded(page)]).toEqual([name, width, []]);
        await inThemes(async (theme) => {
          const path = join(PICTURES, `${name}-${theme}-${width}.png`);
          await page.evaluate(PAINTED);
          await page.screenshot({ path, animations: 'disabled' });
        });
      }
      await page.setViewportSize(own.size);
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
}
