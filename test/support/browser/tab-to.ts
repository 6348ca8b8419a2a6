import type { Page } from 'playwright-core';

/** Of a page with long lists. */
const MOST_PRESSES = 150;

/** What names the element that has the focus; `false` when it is out of sight. */
const FOCUSED = `(() => {
  const { activeElement: one } = document;
  const box = one.getBoundingClientRect();
  const isSeen = box.bottom > 0 && box.top < innerHeight;
  const labels = [...(one.labels ?? [])].map((label) => label.innerText.trim());
  return isSeen && [one.id, one.getAttribute('aria-label'), one.innerText?.trim(), ...labels];
})()`;

/** Presses Tab until what has the focus has this id, label or text, and is in sight. */
export async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < MOST_PRESSES; presses += 1) {
    const names = await page.evaluate<(string | null)[] | false>(FOCUSED);
    if (names !== false && names.includes(name)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`The Tab key leads nowhere to ${name}.`);
}
