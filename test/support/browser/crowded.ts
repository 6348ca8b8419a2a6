import type { Page } from 'playwright-core';

/** Pixels between the texts of two boxes that stand side by side. */
const LEAST_GAP = 3;

/**
 * Runs in the page. Texts that are seen, line by line: two of different boxes may not touch, and none may end where its box
 * is cut. What scrolls by itself, such as code and logs, may be cut; what ends in an ellipsis is.
 */
const CROWDED = `(() => {
  const INLINE = /^(inline|contents|ruby)/;
  const found = new Set();
  const lines = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const text = node.data.trim();
    const parent = node.parentElement;
    if (text === '' || parent.closest('pre, .copy-line code, .terminal-box, .chart, .hidden, [aria-hidden=true]') !== null) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const at = document.elementFromPoint((rect.left + rect.right) / 2, (rect.top + rect.bottom) / 2);
      if (rect.width === 0 || !parent.contains(at)) continue;
      let block = parent;
      while (INLINE.test(getComputedStyle(block).display)) block = block.parentElement;
      for (let one = parent; one !== null; one = one.parentElement) {
        const { overflowX, textOverflow } = getComputedStyle(one);
        if (overflowX === 'visible' || one.getClientRects().length === 0) continue;
        const box = one.getBoundingClientRect();
        if (textOverflow !== 'ellipsis' && rect.right > box.right + 1) found.add('cut: ' + text.slice(0, 60));
        break;
      }
      lines.push({ text, block, rect, layer: parent.closest('dialog, [popover]') });
    }
  }
  lines.sort((a, b) => a.rect.top - b.rect.top);
  for (const [index, one] of lines.entries()) {
    for (const other of lines.slice(index + 1)) {
      if (other.rect.top > one.rect.bottom) break;
      if (one.layer !== other.layer || one.block === other.block || one.block.contains(other.block) || other.block.contains(one.block)) continue;
      const shared = Math.min(one.rect.bottom, other.rect.bottom) - other.rect.top;
      if (shared < Math.min(one.rect.height, other.rect.height) / 2) continue;
      const [left, right] = one.rect.left < other.rect.left ? [one, other] : [other, one];
      if (right.rect.left - left.rect.right < ${LEAST_GAP}) {
        found.add('touch: ' + left.text.slice(0, 60) + ' | ' + right.text.slice(0, 60));
      }
    }
  }
  return [...found];
})()`;

/** Texts of the page as it is that touch another, or are cut. */
export function crowded(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(CROWDED);
}
