import { useEffect, useState } from 'preact/hooks';
import { attempt, providerName, signIn, stillSignedInAt } from './state.ts';

function TokenForm({ isFirst }: { isFirst: boolean }) {
  return (
    <form
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem('token') as HTMLInputElement;
        void attempt(async () => {
          await signIn(field.value);
          field.value = '';
        });
      }}
    >
      <label for="token">Kubernetes token</label>
      <input
        id="token"
        name="token"
        type="password"
        required
        autofocus={isFirst}
        spellcheck={false}
        autocomplete="off"
        aria-describedby="token-help"
      />
      <p class="help" id="token-help">
        Create one: <code>kubectl create token NAME --namespace NAMESPACE --audience=berth</code>
      </p>
      <button class={isFirst ? 'primary' : undefined} type="submit">
        Sign in
      </button>
    </form>
  );
}

export function SignIn() {
  const [provider, setProvider] = useState<string>();
  useEffect(() => {
    // Without an answer there is the token, which the page says how to make.
    void providerName().then(setProvider, () => undefined);
  }, []);
  return (
    <section class="card narrow" aria-labelledby="sign-in-title">
      <h1 id="sign-in-title">Sign in</h1>
      {stillSignedInAt.value !== '' && (
        <p class="help">
          You signed out here. {stillSignedInAt.value} still knows you:{' '}
          <a href="/dashboard/oidc/end">Sign out at {stillSignedInAt.value} too</a>
        </p>
      )}
      <p>Your role in the cluster decides what you may do here.</p>
      {provider !== undefined && (
        <p>
          <a class="button primary" href="/dashboard/oidc/begin">
            Sign in with {provider}
          </a>
        </p>
      )}
      <TokenForm isFirst={provider === undefined} />
      <p class="help roles">
        <code>berth-view</code> lets you look, <code>berth-edit</code> rent, and <code>berth-admin</code> make keys. An
        administrator binds them to you in a namespace, which is your project.
      </p>
    </section>
  );
}
