import { useEffect } from 'preact/hooks';
import { AccessView } from '../access/access.tsx';
import { InstanceView } from '../instances/instance.tsx';
import { InstancesView } from '../instances/list.tsx';
import { KeysView } from '../access/ssh-keys.tsx';
import { RentView } from '../rent/rent.tsx';
import { attempt, choose, note, problem, session, signOut, suggestions, tenant, view } from '../state.ts';
import { Alert, Link } from './controls.tsx';
import { shortUser } from './words.ts';
import { SignIn } from './sign-in.tsx';

const PLACES = [
  { name: '', to: '/dashboard', title: 'Instances' },
  { name: 'rent', to: '/dashboard/rent', title: 'Rent' },
  { name: 'ssh-keys', to: '/dashboard/ssh-keys', title: 'SSH keys' },
  { name: 'api-access', to: '/dashboard/api-access', title: 'API access' },
] as const;

function TenantChooser() {
  return (
    <form
      class="tenant"
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem('namespace') as HTMLInputElement;
        void choose(field.value);
      }}
    >
      <label for="namespace">Namespace</label>
      <input
        id="namespace"
        name="namespace"
        list="namespaces"
        required
        pattern="[a-z0-9]([a-z0-9\-]{0,61}[a-z0-9])?"
        spellcheck={false}
        autocomplete="off"
        defaultValue={tenant.value}
        key={tenant.value}
      />
      <datalist id="namespaces">
        {suggestions.value.map((name) => (
          <option value={name} key={name} />
        ))}
      </datalist>
      <button type="submit" class="small">
        Show
      </button>
    </form>
  );
}

function Current() {
  const [place = '', id = ''] = view.value;
  // Another tenant is another view: nothing of the one before may stand under its name.
  const key = tenant.value;
  if (place === 'instances' && id !== '') return <InstanceView key={`${key}/${id}`} id={id} />;
  if (place === 'rent') return <RentView key={key} />;
  if (place === 'ssh-keys') return <KeysView key={key} />;
  if (place === 'api-access') return <AccessView key={key} />;
  return <InstancesView key={key} />;
}

/** What stands around every view, and the view. */
export function Page() {
  const [place = ''] = view.value;
  const signedIn = session.value !== null && session.value !== undefined;
  const isHere = (name: string): boolean => name === place || (name === '' && place === 'instances');
  const title = PLACES.find(({ name }) => isHere(name))?.title ?? 'Dashboard';
  useEffect(() => {
    document.title = `${signedIn ? title : 'Sign in'} · Berth`;
  }, [title, signedIn]);
  return (
    <>
      <header>
        <Link class="brand" to="/dashboard">
          <img src="/dashboard/icon.svg" alt="" width="28" height="28" />
          Berth
        </Link>
        <nav aria-label="Main">
          {signedIn &&
            PLACES.map(({ name, to, title }) => (
              <Link to={to} key={name} current={isHere(name)}>
                {title}
              </Link>
            ))}
          <a href="/docs">API reference</a>
        </nav>
        {signedIn && <TenantChooser />}
        {signedIn && (
          <div class="who">
            <span title={session.value?.username}>{shortUser(session.value?.username ?? '')}</span>
            <button class="quiet" type="button" onClick={() => void attempt(signOut)}>
              Sign out
            </button>
          </div>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        <Alert id="alert" text={problem.value} />
        {session.value === null && <SignIn />}
        {signedIn && <Current />}
      </main>
      <p class="hidden" role="status">
        {note.value}
      </p>
    </>
  );
}
