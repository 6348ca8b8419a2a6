import { CopyLine } from '../parts/controls.tsx';
import type { Same } from './same.ts';

const TOOLS = ['curl', 'berth', 'kubectl'] as const;

/** The same action without the page, to copy. */
export function SameElsewhere({ same }: { same: Same }) {
  return (
    <details class="same">
      <summary>Copy as curl, berth or kubectl</summary>
      {TOOLS.map((tool) => {
        const text = same[tool];
        return text === undefined ? null : <CopyLine key={tool} label={tool} text={text} />;
      })}
    </details>
  );
}
