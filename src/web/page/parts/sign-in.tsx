import { attempt, signIn } from '../state.ts';

export function SignIn() {
  return (
    <section class="card narrow" aria-labelledby="sign-in-title">
      <h1 id="sign-in-title">Sign in</h1>
      <p>Use a Kubernetes token. Your role in the cluster decides what you may do here.</p>
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
          autofocus
          spellcheck={false}
          autocomplete="off"
          aria-describedby="token-help"
        />
        <p class="help" id="token-help">
          Create one: <code>kubectl create token NAME --namespace NAMESPACE --audience=berth</code>
        </p>
        <p class="help">
          <code>berth-view</code> lets you look, <code>berth-edit</code> rent, and <code>berth-admin</code> make keys.
        </p>
        <button class="primary" type="submit">
          Sign in
        </button>
      </form>
    </section>
  );
}
