import { api, byId, element, timeElement } from './dom.js';

const DAY_MS = 86_400_000;
let keys = [];
let revoking;

function say(text) {
  byId('status').textContent = text;
}

function showAlert(id, message) {
  const box = byId(id);
  box.textContent = message;
  box.hidden = message === '';
}

/** Runs an action of the user and shows its failure. When the session has expired it shows the sign-in form. */
async function attempt(action, alertId = 'alert') {
  showAlert(alertId, '');
  try {
    await action();
  } catch (error) {
    if (error.code === 'not_signed_in' && byId('sign-in').hidden) showSignIn();
    showAlert(error.code === 'not_signed_in' ? 'alert' : alertId, error.message);
  }
}

function showSignIn() {
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
  byId('who').hidden = true;
  byId('keys').hidden = true;
  byId('sign-in').hidden = false;
  byId('token').focus();
}

/** A table cell with the name of its column, which narrow screens show. */
function cell(label, ...children) {
  const made = element('td', {}, ...children);
  made.dataset.label = label;
  return made;
}

function row(key) {
  const chips = key.scopes.map((scope) => element('span', { className: 'chip' }, scope));
  const name = element('th', { scope: 'row' }, key.name === '' ? key.id : key.name);
  if (key.state !== 'active') name.append(' ', element('span', { className: `badge ${key.state}` }, key.state));
  const action = element('td', { className: 'action' });
  if (key.state === 'active') {
    const button = element('button', { type: 'button', className: 'quiet danger' }, 'Revoke');
    button.setAttribute('aria-label', `Revoke ${key.name === '' ? key.id : key.name}`);
    button.addEventListener('click', () => askRevoke(key));
    action.append(button);
  }
  return element(
    'tr',
    { className: key.state },
    name,
    cell('Key', element('code', {}, `${key.prefix}…`)),
    cell('Scopes', ...chips),
    cell('Created', timeElement(key.created_at, '')),
    cell('Expires', timeElement(key.expires_at, 'never')),
    cell('Last used', timeElement(key.last_used_at, 'never')),
    action,
  );
}

function render() {
  byId('rows').replaceChildren(...keys.map(row));
  byId('empty-namespace').textContent = byId('namespace').value;
  byId('empty').hidden = keys.length > 0;
}

async function loadKeys() {
  const namespace = byId('namespace').value;
  // Clear first: when the call fails, no keys of the previous namespace may be shown under this one.
  keys = [];
  byId('rows').replaceChildren();
  byId('empty').hidden = true;
  keys = (await api('GET', `/keys?namespace=${encodeURIComponent(namespace)}`)).data;
  render();
  say(`${keys.length} keys in ${namespace}`);
}

async function showKeys({ username }) {
  const { data } = await api('GET', '/namespaces');
  byId('namespaces').replaceChildren(...data.map((name) => element('option', { value: name })));
  if (byId('namespace').value === '') byId('namespace').value = data[0] ?? 'default';
  byId('username').textContent = username;
  byId('who').hidden = false;
  byId('sign-in').hidden = true;
  byId('keys').hidden = false;
  await loadKeys();
}

function askRevoke(key) {
  revoking = key;
  byId('revoke-name').textContent = key.name === '' ? key.id : key.name;
  byId('revoke').showModal();
}

byId('sign-in-form').addEventListener('submit', (event) => {
  event.preventDefault();
  void attempt(async () => {
    const token = byId('token').value;
    const session = await api('POST', '/session', { token });
    byId('token').value = '';
    await showKeys(session);
  });
});

byId('sign-out').addEventListener('click', () => {
  void attempt(async () => {
    await api('DELETE', '/session');
    keys = [];
    render();
    showSignIn();
  });
});

byId('namespace-form').addEventListener('submit', (event) => {
  event.preventDefault();
  void attempt(loadKeys);
});

byId('new-key').addEventListener('click', () => {
  byId('create-form').reset();
  showAlert('create-alert', '');
  byId('create').showModal();
});

byId('create-form').addEventListener('submit', (event) => {
  event.preventDefault();
  void attempt(async () => {
    const form = new FormData(byId('create-form'));
    const days = form.get('expiry');
    const { token, ...key } = await api('POST', '/keys', {
      namespace: byId('namespace').value,
      name: form.get('name'),
      scopes: form.getAll('scope'),
      expires_at: days === '' ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString(),
    });
    byId('create').close();
    keys = [key, ...keys];
    render();
    byId('made-token').value = token;
    byId('made-curl').value = `curl -H 'Authorization: Bearer ${token}' ${location.origin}/api/v1/offers`;
    byId('made').showModal();
    byId('made-token').select();
  }, 'create-alert');
});

// The key is shown once: only the button closes its dialog. Some browsers let a second Escape pass `cancel`.
byId('made').addEventListener('cancel', (event) => event.preventDefault());
byId('made').addEventListener('keydown', (event) => {
  if (event.key === 'Escape') event.preventDefault();
});

// Closing the dialog removes the token from the page.
byId('made').addEventListener('close', () => {
  byId('made-token').value = '';
  byId('made-curl').value = '';
});

byId('revoke-form').addEventListener('submit', () => {
  const { namespace, id } = revoking;
  void attempt(async () => {
    const revoked = await api('POST', `/keys/${namespace}/${encodeURIComponent(id)}/revoke`);
    keys = keys.map((key) => (key.id === id ? revoked : key));
    render();
    say('Key revoked');
  });
});

for (const button of document.querySelectorAll('[data-close]')) {
  button.addEventListener('click', () => button.closest('dialog').close());
}

async function copy(button) {
  const field = byId(button.dataset.copy);
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    say('Copied');
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 2000);
  } catch {
    // Without https a page cannot use the clipboard. The text is selected already.
    say('Press Ctrl+C to copy');
  }
}

for (const button of document.querySelectorAll('[data-copy]')) {
  button.addEventListener('click', () => void copy(button));
}

/** The session that the browser has; without one, shows the sign-in form. */
async function findSession() {
  try {
    return await api('GET', '/session');
  } catch (error) {
    showSignIn();
    if (error.code !== 'not_signed_in') showAlert('alert', error.message);
    else if (!window.isSecureContext) {
      showAlert('alert', 'Over plain HTTP your browser keeps no session. Open this page by HTTPS, or on localhost.');
    }
    return undefined;
  }
}

const session = await findSession();
if (session !== undefined) await attempt(() => showKeys(session));
