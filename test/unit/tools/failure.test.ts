import { describe, expect, it } from 'vitest';
import { explainFailure, LocalFailure } from '../../../tools/lib/failure.ts';

describe('explainFailure', () => {
  it('says cause and remedy in a line each, then the details', () => {
    const failure = new LocalFailure('It broke.', 'Mend it.', ['first', 'second']);
    expect(explainFailure(failure)).toBe('Error: It broke.\nNext step: Mend it.\n  | first\n  | second');
  });

  it('knows a full disk by its code, wherever it struck', () => {
    const error = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    expect(explainFailure(error)).toMatch(/^Error: The disk is full .*\nNext step: Free some space/);
  });

  it('keeps the stack of what it does not know', () => {
    expect(explainFailure(new TypeError('odd'))).toMatch(/TypeError: odd\n\s+at /);
  });
});
