import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SECRETS } from '../../../src/kube/types.ts';
import { account, BERTH_EDIT, BERTH_VIEW, KEY_RIGHTS } from '../../support/accounts.ts';
import { type DashboardView, openDashboard } from '../../support/dashboard-view.ts';
import { type DashboardWorld, dashboardWorld } from '../../support/dashboard-world.ts';
import { describeWith } from '../../support/needs.ts';
import type { ScriptedEngine } from '../../support/scripted-engine.ts';
import { serveModel } from '../../support/serve-model.ts';
import { waitFor } from '../../support/wait-for.ts';

const HOSTILE = `<img src=x onerror="document.title='owned'">'"$(id)`;
const PASSWORD = 'hunter2-and-a-half';
const METRICS = 'vllm:num_requests_running 7\nvllm:num_requests_waiting 3\n';
const ANSWER = 'So that they have a place to rest. The harbour knows where each of them lies.';
const MODEL = 'Qwen/Qwen3-8B';
const OTHER = 'small';

let world: DashboardWorld;
let tenant: DashboardWorld['tenant'];
let dashboard: DashboardWorld['dashboard'];
let api: DashboardWorld['api'];
let engine: ScriptedEngine;
let admin: string;
let viewer: string;

beforeAll(async () => {
  world = await dashboardWorld();
  ({ tenant, dashboard, api } = world);
  const namespace = tenant.name;
  // Of Berth's own namespace.
  engine = await serveModel(
    { client: tenant.client, name: world.namespace },
    {
      models: [MODEL, OTHER],
      dialects: ['chat', 'messages'],
      contextLength: 40_960,
      metrics: METRICS,
    },
  );
  engine.behave({
    kind: 'answer',
    reply: { text: ANSWER, reasoning: 'Ships are large.', inputTokens: 21, outputTokens: 9 },
    gapMs: 20,
  });
  admin = await account(tenant.client, namespace, 'admin', [...BERTH_EDIT, ...KEY_RIGHTS]);
  viewer = await account(tenant.client, namespace, 'viewer', BERTH_VIEW);
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await engine.close();
});

describeWith('chromium')('the pages of the dashboard', () => {
  let view: DashboardView;

  beforeAll(async () => {
    view = await openDashboard(api.url);
    await view.signIn(admin);
  });
  afterAll(() => view[Symbol.asyncDispose]());

  async function goTo(name: string): Promise<void> {
    await view.page.getByRole('link', { name, exact: true }).first().click();
    await view.page.getByRole('heading', { level: 1, name }).waitFor();
  }

  it('an empty list of templates says what they are for; one is made, with the words of the API for what is wrong', async () => {
    const { page, findings, picture } = view;
    await goTo('Templates');
    await page.getByRole('heading', { name: 'No templates yet' }).waitFor();
    expect(await findings()).toEqual([]);
    await picture('templates-empty');
    await page.getByRole('button', { name: 'New template' }).click();
    const dialog = page.locator('#template');
    await dialog.getByLabel('Name', { exact: true }).fill(HOSTILE);
    await dialog.getByLabel('Disk in GB').fill('99999');
    await dialog.getByText('Variables and ports').click();
    await dialog.getByLabel('Environment variables').fill('HF_HOME=/workspace\nNVIDIA_VISIBLE_DEVICES=all');
    await dialog.getByLabel('Ports').fill('8000 api');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog
      .locator('#template-env-help')
      .filter({ hasText: /^NVIDIA_VISIBLE_DEVICES: the/ })
      .waitFor();
    await dialog.locator('#template-disk-help.wrong').waitFor();
    expect(await findings()).toEqual([]);
    await picture('template-refused');
    await dialog.getByLabel('Disk in GB').fill('20');
    await dialog.getByLabel('Environment variables').fill('HF_HOME=/workspace');
    await dialog.getByLabel('Script at the start').fill('echo hello');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('rowheader', { name: HOSTILE }).waitFor();
  });

  it('changes it, and keeps what was not touched', async () => {
    const { page, findings, picture } = view;
    await page.getByRole('button', { name: `Edit ${HOSTILE}` }).click();
    const dialog = page.locator('#template');
    expect(await dialog.getByLabel('Ports').inputValue()).toBe('8000 api');
    expect(await dialog.getByLabel('Script at the start').inputValue()).toBe('echo hello');
    await dialog.getByLabel('Name', { exact: true }).fill('training');
    await dialog.getByText('Copy as curl, berth or kubectl').click();
    expect(await dialog.locator('.copy-line code').allTextContents()).toEqual([
      expect.stringMatching(/^curl -X PUT .*"HF_HOME":"\/workspace"/),
      expect.stringMatching(
        /^printf %s '.*"HF_HOME":"\/workspace".*' >template.json; berth templates replace \d+ --file=template.json$/,
      ),
      expect.stringMatching(/^kubectl patch instancetemplate -n \S+ \$\(kubectl get .*"path":"\/spec".*HF_HOME/),
    ]);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('rowheader', { name: 'training' }).waitFor();
    expect(await findings()).toEqual([]);
    await picture('templates');
  });

  it('rents with it', async () => {
    const { page } = view;
    await page.getByRole('link', { name: 'Rent with training' }).click();
    await page.getByRole('button', { name: 'Rent 1 × NVIDIA-L40S', exact: true }).click();
    const dialog = page.locator('#rent');
    await dialog.getByLabel('Template').waitFor();
    expect(await dialog.getByLabel('Template').locator('option:checked').textContent()).toBe('training');
    await dialog.getByRole('button', { name: /^Rent for/ }).click();
    await page.locator('.state.running').waitFor();
    // The disk and the port are those of the template.
    await page.getByText('20 GB').waitFor();
    await page.getByRole('button', { name: 'Open api' }).waitFor();
  });

  it('deletes it after a question, by keyboard alone', async () => {
    const { page, findings } = view;
    await goTo('Templates');
    await page.getByRole('button', { name: 'Delete training' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Delete this template?' }).waitFor();
    expect(await findings()).toEqual([]);
    await page.keyboard.press('Escape');
    await page.locator('#delete').waitFor({ state: 'detached' });
    await page.keyboard.press('Enter');
    await page.locator('#delete').getByRole('button', { name: 'Delete' }).press('Enter');
    await page.getByRole('heading', { name: 'No templates yet' }).waitFor();
  });

  it('sees what it costs by day, instance and person, and takes it as a file', async () => {
    const { page, findings, picture } = view;
    await goTo('Usage');
    await page.getByText(/GPU-hours so far/).waitFor();
    await page.getByRole('row', { name: /^person\/.*admin.* runs/ }).waitFor();
    const instance = await page.getByRole('link', { name: /^i-/ }).textContent();
    await page.getByRole('img', { name: 'USD per day' }).locator('canvas').waitFor();
    // Pixels of the bar of today, whatever its colour.
    const drawn = `(() => {
      const { width, height } = document.querySelector('.chart canvas');
      const all = document.querySelector('.chart canvas').getContext('2d').getImageData(0, 0, width, height).data;
      const [r, g, b] = getComputedStyle(document.querySelector('.segments input:checked + span')).backgroundColor.match(/\\d+/g);
      let found = 0;
      for (let at = 0; at < all.length; at += 4) found += all[at] == r && all[at + 1] == g && all[at + 2] == b;
      return found;
    })()`;
    expect(await page.evaluate(drawn)).toBeGreaterThan(100);
    expect(await findings()).toEqual([]);
    await picture('usage');
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download CSV' }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(new RegExp(`^berth-${tenant.name}-\\d{4}-\\d\\d-01-`));
    expect(readFileSync((await file.path()) ?? '', 'utf8')).toContain(instance);
    await page.getByRole('radio', { name: 'Last month' }).check();
    await page.getByRole('heading', { name: 'Nothing was used' }).waitFor();
    expect(await findings()).toEqual([]);
  });

  it('a login of a registry goes in, and its password never comes back', async () => {
    const { page, findings, picture, answers } = view;
    await goTo('Registries');
    await page.getByRole('heading', { name: 'No registries yet' }).waitFor();
    expect(await findings()).toEqual([]);
    await page.getByLabel('Name', { exact: true }).fill('No Name');
    await page.getByLabel('Registry', { exact: true }).fill('ghcr.io');
    await page.getByLabel('User name').fill('robot');
    await page.getByLabel('Password or token').fill(PASSWORD);
    await page.getByText('Copy as curl or berth').click();
    const lines = (await page.locator('.copy-line code').allTextContents()).join('\n');
    expect(lines).toMatch(/berth registries add 'No Name' ghcr.io robot/);
    expect(lines).not.toContain(PASSWORD);
    await page.getByRole('button', { name: 'Add registry' }).click();
    await page.getByRole('alert').filter({ hasText: 'name' }).waitFor();
    await page.getByLabel('Name', { exact: true }).fill('ghcr');
    await page.getByRole('button', { name: 'Add registry' }).click();
    await page.getByRole('row', { name: /ghcr.*robot/ }).waitFor();
    expect(await page.getByLabel('Password or token').inputValue()).toBe('');
    expect(await findings()).toEqual([]);
    await picture('registries');
    const { data } = await tenant.client.get(SECRETS, { namespace: tenant.name, name: 'ghcr' });
    expect(Buffer.from(Object.values(data ?? {})[0] ?? '', 'base64').toString()).toContain(PASSWORD);
    expect(await page.content()).not.toContain(PASSWORD);
    expect(answers.filter((text) => text.includes(PASSWORD))).toEqual([]);
    const logs = [...api.processes, dashboard].map((one) => one.log()).join('');
    expect(logs).not.toContain(PASSWORD);
    // Templates offer it.
    await goTo('Templates');
    await page.getByRole('button', { name: 'New template' }).click();
    await page.locator('#template').getByLabel('Registry').selectOption('ghcr');
    await page.keyboard.press('Escape');
    await goTo('Registries');
    await page.getByRole('button', { name: 'Delete ghcr' }).click();
    await page.locator('#delete').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'No registries yet' }).waitFor();
  });

  it('a model is there, and answers in each of its APIs as it writes', async () => {
    const { page, findings, picture } = view;
    await goTo('Models');
    const row = page.getByRole('row', { name: new RegExp(MODEL) });
    await row.getByText('1 ready').waitFor();
    await row.getByText('40,960 tokens').waitFor();
    await row.getByText('7 calls under way, 3 waiting').waitFor();
    expect(await row.locator('.chip.translated').allTextContents()).toEqual([
      'Responses translated',
      'Messages translated',
    ]);
    // As in a tab behind another, nothing is painted for a while: the times are those of the answer all the same.
    const late = 'setTimeout(() => painted(draw), 1000)';
    await page.evaluate(`{ const painted = requestAnimationFrame; window.requestAnimationFrame = (draw) => ${late}; }`);
    for (const name of ['Chat completions', 'Responses', 'Messages']) {
      await page.getByRole('radio', { name }).check();
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByText(/whole after .* 21 tokens read · 9 written/).waitFor();
      expect(await page.getByRole('region', { name: 'Answer' }).textContent()).toBe(ANSWER);
      expect(await page.getByText('Ships are large.').count()).toBe(1);
      const numbers = (await page.locator('.numbers').textContent()) ?? '';
      const [, first, whole] = /^first words after (\S+) s · whole after (\S+) s/.exec(numbers) ?? [];
      expect(Number(first), numbers).toBeLessThanOrEqual(Number(whole));
      await page.getByLabel('Prompt').fill('Why do ships have a berth? Answer in two sentences.');
    }
    // The gateway trusts this engine with chat completions of this model alone.
    expect(engine.received.map(({ path }) => path)).toEqual(Array.from({ length: 3 }, () => '/v1/chat/completions'));
    expect(await findings()).toEqual([]);
    await picture('models');
  });

  it('what a model says is set as text; one that fails, or is stopped, says so', async () => {
    const { page } = view;
    engine.behave({ kind: 'answer', reply: { text: HOSTILE, reasoning: HOSTILE } });
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('region', { name: 'Answer' }).filter({ hasText: HOSTILE }).waitFor();
    await page.getByText(/whole after/).waitFor();
    engine.behave({ kind: 'stall', reply: { text: 'Half of an answer' }, events: 2 });
    await page.getByRole('button', { name: 'Send' }).click();
    await waitFor('the call', () => engine.received.length === 5);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    engine.behave({ kind: 'status', status: 400, body: '{"error":{"message":"The prompt is no prompt."}}' });
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('alert').filter({ hasText: 'The prompt is no prompt.' }).waitFor();
    // The click on Stop sent nothing.
    expect(engine.received).toHaveLength(6);
  });

  it('two models answer side by side, and say how fast', async () => {
    const { page, findings, picture } = view;
    // Longer than a busy browser takes to hear of it: pieces that come at once have no speed.
    engine.behave({ kind: 'answer', reply: { text: ANSWER, outputTokens: 9 }, gapMs: 300 });
    await page.getByLabel('Compare with').selectOption(OTHER);
    await page.getByRole('button', { name: 'Send' }).click();
    for (const name of [MODEL, OTHER]) {
      await page
        .getByRole('region', { name: `Answer of ${name}`, exact: true })
        .filter({ hasText: ANSWER })
        .waitFor();
    }
    await waitFor(
      'both speeds',
      async () => (await page.getByText(/9 written · [\d.]+ tokens per second/).count()) === 2,
    );
    expect(
      engine.received
        .slice(-2)
        .map(({ body }) => (body as { model: string }).model)
        .toSorted(),
    ).toEqual([MODEL, OTHER]);
    expect(await findings()).toEqual([]);
    await picture('models-compared');
    await page.getByLabel('Compare with').selectOption('');
  });

  it('has programs to copy, with the address of this server', async () => {
    const { page } = view;
    await page.getByRole('radio', { name: 'Codex' }).check();
    const text = await page.getByLabel('Codex', { exact: true }).last().textContent();
    expect(text).toContain(`model = "${MODEL}"`);
    expect(text).toContain(`base_url = "${api.url}/api/v1"`);
  });

  it('a person who may only look gets no call of a model, no fleet and no button that would fail', async () => {
    await using other = await openDashboard(api.url);
    const { page, findings, picture } = other;
    await other.signIn(viewer, '/models');
    await page.getByRole('heading', { name: 'Your roles call no models here' }).waitFor();
    expect(await findings()).toEqual([]);
    await picture('models-refused');
    expect(await page.getByRole('link', { name: 'Fleet' }).count()).toBe(0);
    await page.getByRole('link', { name: 'Templates', exact: true }).click();
    await page.getByRole('heading', { name: 'No templates yet' }).waitFor();
    expect(await page.getByRole('button', { name: 'New template' }).count()).toBe(0);
    await page.getByRole('link', { name: 'Registries', exact: true }).click();
    await page.getByRole('heading', { name: 'No registries yet' }).waitFor();
    expect(await page.getByRole('button', { name: 'Add registry' }).count()).toBe(0);
    expect(other.complaints.filter((text) => !/status of (?:401|403)/.test(text))).toEqual([]);
  });

  it('loads nothing from elsewhere and breaks no policy', async () => {
    const { page, requested, complaints } = view;
    expect(requested.filter((url) => !url.startsWith(api.url) && !url.startsWith('data:'))).toEqual([]);
    expect(complaints.filter((text) => !/status of (?:4\d\d)/.test(text))).toEqual([]);
    expect(await page.title()).not.toBe('owned');
    expect(await page.locator('img[src=x]').count()).toBe(0);
  });
});
