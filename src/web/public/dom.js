/** The element with this id. */
export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`The page has no #${id}.`);
  return element;
}

/** A new element. Text is set as text, never as markup. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** A time as a date, with the exact time as a tooltip. */
export function timeElement(text, absent) {
  if (text === null) return absent;
  const date = new Date(text);
  const shown = date.toLocaleDateString(undefined, { year: 'numeric', month: 'short', day: 'numeric' });
  return element('time', { dateTime: text, title: date.toLocaleString() }, shown);
}

/** Calls the API of the dashboard; throws an Error with its message. */
export async function api(method, path, body) {
  const response = await fetch(`/dashboard/api${path}`, {
    method,
    credentials: 'same-origin',
    headers: { 'x-berth-dashboard': '1', ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const answer = await response.json();
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
}
