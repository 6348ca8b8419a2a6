/** How a value is written. What it means, the server decides. */
export type Form = 'amount' | 'count' | 'day' | 'duration' | 'id' | 'since';

const DURATION = /^(?:\d{1,9}(?:\.\d{1,3})?[hms]){1,4}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** Whether the calendar has the day. */
function isDay(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

const isDuration = (text: string): boolean => DURATION.test(text);

const RULES: Readonly<
  Record<Form, { fits: (text: string, least: number) => boolean; write: (least: number) => string }>
> = {
  amount: { fits: (text) => /^\d{1,9}(?:\.\d{1,6})?$/.test(text), write: () => 'an amount such as 1.50' },
  count: {
    fits: (text, least) => /^\d{1,15}$/.test(text) && Number(text) >= least,
    write: (least) => `a whole number of ${least} or more`,
  },
  day: { fits: isDay, write: () => 'a day such as 2026-11-01' },
  duration: { fits: isDuration, write: () => 'a time such as 90m or 12h' },
  id: { fits: (text) => /^\d{1,15}$/.test(text), write: () => 'an id, which is a number' },
  since: {
    fits: (text) => isDuration(text) || (TIME.test(text) && !Number.isNaN(Date.parse(text))),
    write: () => 'a time such as 10m, or 2026-11-01T12:00:00Z',
  },
};

/** What to write in place of a value that does not have the form; undefined for one that has it. */
export function wrongForm(form: Form, text: string, least = 1): string | undefined {
  return RULES[form].fits(text, least) ? undefined : RULES[form].write(least);
}
