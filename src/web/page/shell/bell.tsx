import { useRef, useState } from 'preact/hooks';
import type { InstanceRecord } from '../../../wire/records.ts';
import { Link } from '../parts/controls.tsx';
import { ago } from '../parts/words.ts';
import { roughly, tenant } from '../state.ts';
import { happeningsOf } from './happenings.ts';

/** Entries that the list shows. */
const MOST = 20;

/** What happened to instances while the person was away. What they have seen, this browser remembers. */
export function Bell({ instances }: { instances: readonly InstanceRecord[] }) {
  const key = `berth.seen.${tenant.value}`;
  const [seen, setSeen] = useState(() => Number(localStorage.getItem(key)));
  const menu = useRef<HTMLDivElement>(null);
  const all = happeningsOf(instances);
  const news = all.filter(({ at }) => at > seen).length;
  function onToggle(isOpen: boolean): void {
    const newest = all[0]?.at ?? 0;
    // When it closes: until then the new ones are marked.
    if (isOpen || newest <= seen) return;
    localStorage.setItem(key, String(newest));
    setSeen(newest);
  }
  return (
    <>
      <button
        id="bell"
        class="small"
        type="button"
        popovertarget="bell-menu"
        aria-label={news === 0 ? 'News' : `News: ${news} new`}
      >
        <svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true">
          <path d="M12 3a6 6 0 0 0-6 6v4l-2 4h16l-2-4V9a6 6 0 0 0-6-6Zm-2 16a2 2 0 0 0 4 0" />
        </svg>
        {news > 0 && <span class="news">{news > 9 ? '9+' : news}</span>}
      </button>
      <div
        id="bell-menu"
        class="menu"
        popover="auto"
        ref={menu}
        onToggle={(event) => onToggle((event as unknown as ToggleEvent).newState === 'open')}
      >
        <p class="group" id="bell-title">
          News
        </p>
        {all.length === 0 && <p class="soft">No instance ended or was interrupted by itself.</p>}
        <ul aria-labelledby="bell-title" onClick={() => menu.current?.hidePopover()}>
          {all.slice(0, MOST).map(({ id, title, says, at }) => (
            <li key={id}>
              {at > seen && <span class="chip">new</span>}
              <Link to={`/dashboard/instances/${id}`}>{title}</Link> <span class="soft">{ago(roughly.value - at)}</span>
              <span class="soft block">{says}</span>
            </li>
          ))}
        </ul>
      </div>
    </>
  );
}
