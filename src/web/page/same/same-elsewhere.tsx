import { CopyLine } from '../parts/controls.tsx';
import type { Same } from './same.ts';

const TOOLS = ['curl', 'berth', 'kubectl'] as const;

/** The same action without the page, to copy. */
export function SameElsewhere({ same }: { same: Same }) {
  const lines = TOOLS.flatMap((tool) => {
    const text = same[tool];
    return text === undefined ? [] : [{ tool, text }];
  });
  const tools = lines.map(({ tool }) => tool);
  return (
    <details class="same">
      <summary>Copy as {[tools.slice(0, -1).join(', '), tools.at(-1)].filter(Boolean).join(' or ')}</summary>
      {lines.map(({ tool, text }) => (
        <CopyLine key={tool} label={tool} text={text} />
      ))}
    </details>
  );
}
