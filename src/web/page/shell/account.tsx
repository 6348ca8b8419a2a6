import { useRef } from 'preact/hooks';
import { shortUser } from '../parts/words.ts';
import { attempt, choose, session, signOut, suggestions, tenant } from '../state.ts';

/** The project that the page shows, the person, and how to change both. */
export function Account() {
  const menu = useRef<HTMLDivElement>(null);
  const username = session.value?.username ?? '';
  const others = suggestions.value;
  function show(project: string): void {
    menu.current?.hidePopover();
    void choose(project);
  }
  return (
    <>
      <button id="account" class="small" type="button" popovertarget="account-menu">
        <span class="hidden">Project and account: </span>
        <strong>{tenant.value}</strong> <span class="soft person">{shortUser(username)}</span>
      </button>
      <div id="account-menu" class="menu" popover="auto" ref={menu}>
        <p class="who">
          Signed in as <span title={username}>{shortUser(username)}</span>
        </p>
        {others.length > 0 && (
          <>
            <p class="group" id="projects-title">
              Projects
            </p>
            <ul aria-labelledby="projects-title">
              {others.map((name) => (
                <li key={name}>
                  <button
                    type="button"
                    class="quiet"
                    aria-current={name === tenant.value ? 'true' : undefined}
                    onClick={() => show(name)}
                  >
                    {name}
                  </button>
                </li>
              ))}
            </ul>
          </>
        )}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            show((event.currentTarget.elements.namedItem('project') as HTMLInputElement).value);
          }}
        >
          <label for="project">Another project</label>
          <div class="copy">
            <input
              id="project"
              name="project"
              required
              pattern="[a-z0-9]([a-z0-9\-]{0,61}[a-z0-9])?"
              spellcheck={false}
              autocomplete="off"
              placeholder="Namespace"
            />
            <button type="submit" class="small">
              Show
            </button>
          </div>
        </form>
        <button type="button" onClick={() => void attempt(signOut)}>
          Sign out
        </button>
      </div>
    </>
  );
}
